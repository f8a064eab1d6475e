#include "muster/data/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <set>

namespace muster::data {
namespace {

constexpr std::size_t synthetic_side = 32;
constexpr std::size_t pixels = synthetic_side * synthetic_side;
constexpr std::size_t record_bytes = 1 + 3 * pixels;
constexpr std::uint64_t classes = 10;
constexpr std::int64_t records_max = 1000000;
constexpr const char* marker_name = "SYNTHETIC.txt";
constexpr std::array names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                              "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
constexpr const char* class_names =
    "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// Stripes of a class: direction, width and colour are its own; their place, brightness and noise are random.
void draw_record(const RandomStream& random, std::byte* record) {
  const std::uint64_t label = random.below(0, classes);
  const auto number = static_cast<double>(label);
  const double direction = std::numbers::pi / static_cast<double>(classes) * number;
  const double wave = 2 * std::numbers::pi / (5.0 + 2.0 * static_cast<double>(label % 4));
  const double phase = 2 * std::numbers::pi * random.uniform(1);
  const double brightness = 128 + 40 * (random.uniform(2) - 0.5);
  record[0] = static_cast<std::byte>(label);
  std::array<double, 3> colour{};
  for (std::size_t c = 0; c < 3; ++c)
    colour[c] = 45 * std::cos(2 * std::numbers::pi *
                              (number / static_cast<double>(classes) - static_cast<double>(c) / 3));
  for (std::size_t i = 0; i < pixels; ++i) {
    const auto x = static_cast<double>(i % synthetic_side), y = static_cast<double>(i / synthetic_side);
    const double stripe = std::cos(wave * (x * std::cos(direction) + y * std::sin(direction)) + phase);
    const std::uint64_t noise = random.bits(3 + i);
    for (std::size_t c = 0; c < 3; ++c) {
      const double grain = static_cast<double>(noise >> (8 * c) & 0xff) / 255 - 0.5;
      const double value = brightness + colour[c] + 40 * stripe + 60 * grain;
      record[1 + c * pixels + i] = static_cast<std::byte>(std::clamp(std::lround(value), 0L, 255L));
    }
  }
}

Bytes draw_file(const SyntheticOptions& options, std::size_t file) {
  Bytes bytes(static_cast<std::size_t>(options.records) * record_bytes);
  for (std::uint64_t record = 0; record < static_cast<std::uint64_t>(options.records); ++record) {
    const std::uint64_t stream[] = {hash_text("muster.data.synthetic_cifar10"), file, record};
    draw_record(RandomStream(options.seed, hash_bytes(stream, sizeof stream)),
                bytes.data() + record * record_bytes);
  }
  return bytes;
}

std::string fingerprint(const std::string& name, std::span<const std::byte> bytes) {
  return fmt::format("{:016x} {}", hash_bytes(bytes.data(), bytes.size()), name);
}

// The fingerprints in the marker of the folder, if it has one.
Result<std::set<std::string>> known_fingerprints(const std::string& path, const Files& files) {
  std::set<std::string> known;
  const auto bytes = files.read(path);
  if (!bytes && bytes.error().code == Code::not_found) return known;
  if (!bytes) return fail(bytes.error());
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    known.emplace(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return known;
}

Result<> check_replaceable(const std::string& folder, const std::string& name,
                           const std::set<std::string>& known, const Files& files) {
  const std::string path = folder + '/' + name;
  const auto there = files.read(path);
  if (!there && there.error().code == Code::not_found) return {};
  if (!there) return fail(there.error());
  if (known.contains(fingerprint(name, *there))) return {};
  return fail(Code::refused,
              fmt::format("'{}' is there and is not a synthetic file of ours: it may be real data. Choose "
                          "another folder, or move the file away",
                          path));
}

std::string marker_text(const SyntheticOptions& options, const std::set<std::string>& fingerprints) {
  std::string text = fmt::format(
      "The pictures in this folder are synthetic: no photographs, not CIFAR-10.\n"
      "Written by: muster data synthetic-cifar10 --records {} --seed {}\n"
      "Fingerprints (XXH3, 64 bits) of the files of ours that may be replaced:\n",
      options.records, options.seed);
  for (const std::string& line : fingerprints)
    if (line.size() > 17 && line.find(' ') == 16) text += line + '\n';
  return text;
}

}  // namespace

Result<std::vector<std::string>> write_synthetic_cifar10(const SyntheticOptions& options, Files& files) {
  if (options.records < 1 || options.records > records_max)
    return fail(Code::invalid_argument,
                fmt::format("records is {}, it must be 1 to {}", options.records, records_max));
  const std::string marker = options.folder + '/' + marker_name;
  MUSTER_TRY(auto known, known_fingerprints(marker, files));
  std::vector<std::string> written(names.begin(), names.end());
  written.emplace_back("batches.meta.txt");
  for (const std::string& name : written)
    MUSTER_TRY_VOID(check_replaceable(options.folder, name, known, files));

  // Each file is named in the marker before it is there: whatever happens in between, it is known as ours.
  for (std::size_t file = 0; file < written.size(); ++file) {
    const Bytes bytes = file < names.size() ? draw_file(options, file) : bytes_of(class_names);
    known.insert(fingerprint(written[file], bytes));
    MUSTER_TRY_VOID(files.write(marker, bytes_of(marker_text(options, known))));
    MUSTER_TRY_VOID(files.write(options.folder + '/' + written[file], bytes));
  }
  written.emplace_back(marker_name);
  return written;
}

}  // namespace muster::data
