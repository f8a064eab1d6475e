#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "muster/data/synthetic.h"

namespace muster::data {
namespace {

using FileBytes = std::vector<std::byte>;

constexpr std::size_t npy_alignment = 64;
constexpr std::size_t factors = 4;  // of each id, whose products with those of another field's id count

// An array as NumPy's format 1.0 has it.
template <class T>
FileBytes npy(std::string_view type, const std::string& shape, const std::vector<T>& values) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, shape);
  constexpr std::size_t before = 10;  // magic, version, length
  header.append(npy_alignment - (before + header.size() + 1) % npy_alignment, ' ');
  header += '\n';
  const auto length = static_cast<std::uint16_t>(header.size());
  const std::string begin = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length & 0xff) +
                            static_cast<char>(length >> 8) + header;
  FileBytes bytes(begin.size() + values.size() * sizeof(T));
  std::memcpy(bytes.data(), begin.data(), begin.size());
  std::memcpy(bytes.data() + begin.size(), values.data(), values.size() * sizeof(T));
  return bytes;
}

struct Samples {
  std::vector<std::int32_t> ids;
  std::vector<float> numbers, labels;
  std::vector<double> odds;
};

// How likely a click is.
class ClickModel {
 public:
  explicit ClickModel(const SyntheticClickOptions& options)
      : options_(options),
        effects_(options.seed, hash_text("muster.data.synthetic_clicks effects")),
        factors_(options.seed, hash_text("muster.data.synthetic_clicks factors")) {}

  // The log odds of a click.
  double operator()(std::span<const std::int32_t> ids, std::span<const float> numbers) const {
    double of_ids = 0, of_numbers = 0, of_pairs = 0;
    for (const std::int32_t id : ids) of_ids += effects_.normal(static_cast<std::uint64_t>(id));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      of_numbers += static_cast<double>(numbers[i]) * (i % 2 == 0 ? 1 : -1);
    for (std::size_t i = 0; i + 1 < ids.size(); i += 2) of_pairs += product(ids[i], ids[i + 1]);
    const auto share = [](std::size_t count) {
      return 1 / std::sqrt(std::max<double>(1, static_cast<double>(count)));
    };
    return 1.5 * of_ids * share(ids.size()) + of_numbers * share(numbers.size()) +
           of_pairs * share(ids.size() / 2 * factors) - 0.5;
  }

 private:
  double product(std::int32_t a, std::int32_t b) const {
    double sum = 0;
    for (std::uint64_t k = 0; k < factors; ++k)
      sum += factors_.normal(static_cast<std::uint64_t>(a) * factors + k) *
             factors_.normal(static_cast<std::uint64_t>(b) * factors + k);
    return sum;
  }

  const SyntheticClickOptions& options_;
  RandomStream effects_, factors_;
};

Samples draw_samples(const SyntheticClickOptions& options, std::string_view part, std::int64_t count) {
  const ClickModel model(options);
  const auto fields = static_cast<std::size_t>(options.fields),
             width = static_cast<std::size_t>(options.numbers);
  Samples made;
  for (std::int64_t sample = 0; sample < count; ++sample) {
    const std::uint64_t stream[] = {hash_text("muster.data.synthetic_clicks"), hash_text(part),
                                    static_cast<std::uint64_t>(sample)};
    const RandomStream random(options.seed, hash_bytes(stream, sizeof stream));
    for (std::size_t field = 0; field < fields; ++field) {
      const double u = random.uniform(field);
      const auto own = static_cast<std::int64_t>(u * u * static_cast<double>(options.vocabulary));
      made.ids.push_back(
          static_cast<std::int32_t>(static_cast<std::int64_t>(field) * options.vocabulary + own));
    }
    for (std::size_t i = 0; i < width; ++i)
      made.numbers.push_back(static_cast<float>(random.normal(2 * fields + 2 * i)));
    made.odds.push_back(model(std::span(made.ids).last(fields), std::span(made.numbers).last(width)));
    const double clicks = 1 / (1 + std::exp(-made.odds.back()));
    made.labels.push_back(random.uniform(2 * fields + 2 * width) < clicks ? 1.0F : 0.0F);
  }
  return made;
}

// How often a click has better odds than what is none; half where they are equal.
double auc_of(const Samples& samples) {
  std::vector<std::size_t> order(samples.odds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return samples.odds[a] < samples.odds[b]; });
  double below = 0, better = 0, clicks = 0;
  for (std::size_t i = 0; i < order.size();) {
    double equal = 0, equal_clicks = 0;
    const double odds = samples.odds[order[i]];
    for (; i < order.size() && samples.odds[order[i]] == odds; ++i)
      (samples.labels[order[i]] > 0 ? equal_clicks : equal) += 1;
    better += equal_clicks * (below + equal / 2);
    below += equal;
    clicks += equal_clicks;
  }
  return clicks == 0 || below == 0 ? 0.5 : better / (clicks * below);
}

Result<> check_options(const SyntheticClickOptions& options) {
  const auto check_count = [](std::string_view what, std::int64_t given, std::int64_t most) -> Result<> {
    if (given >= 1 && given <= most) return {};
    return fail(Code::invalid_argument,
                fmt::format("synthetic clicks: {} is 1 to {}, not {}", what, most, given));
  };
  constexpr std::int64_t ids_max = 2'000'000'000;  // int32
  MUSTER_TRY_VOID(check_count("the number of samples", options.samples, 100'000'000));
  MUSTER_TRY_VOID(check_count("the number of fields", options.fields, 1000));
  MUSTER_TRY_VOID(check_count("the vocabulary of a field", options.vocabulary, ids_max / options.fields));
  return check_count("the number of numbers", options.numbers, 1000);
}

using NamedFile = std::pair<std::string, FileBytes>;

void add_arrays(const SyntheticClickOptions& options, const std::string& part, const Samples& samples,
                std::vector<NamedFile>& made) {
  const std::size_t count = samples.labels.size();
  made.emplace_back(part + "_ids.npy", npy("<i4", fmt::format("{}, {}", count, options.fields), samples.ids));
  made.emplace_back(part + "_numbers.npy",
                    npy("<f4", fmt::format("{}, {}", count, options.numbers), samples.numbers));
  made.emplace_back(part + "_labels.npy", npy("<f4", fmt::format("{},", count), samples.labels));
}

Result<> check_free(const std::string& path, const FileBytes& bytes, const Files& files) {
  const auto there = files.read(path);
  if (!there && there.error().code != Code::not_found) return fail(there.error());
  if (!there || *there == bytes) return {};
  return fail(
      Code::refused,
      fmt::format("'{}' is there and holds something else: choose another folder, or move it away", path));
}

}  // namespace

Result<SyntheticClicks> write_synthetic_clicks(const SyntheticClickOptions& options, Files& files) {
  MUSTER_TRY_VOID(check_options(options));
  const Samples test = draw_samples(options, "test", std::max<std::int64_t>(options.samples / 4, 1));
  SyntheticClicks clicks{.names = {}, .auc_limit = auc_of(test)};
  std::vector<NamedFile> made;
  add_arrays(options, "train", draw_samples(options, "train", options.samples), made);
  add_arrays(options, "test", test, made);
  const std::string limit = fmt::format("{:.6f}\n", clicks.auc_limit);
  const auto bytes = std::as_bytes(std::span(limit));
  made.emplace_back("auc_limit.txt", FileBytes(bytes.begin(), bytes.end()));
  for (const auto& [name, content] : made)
    MUSTER_TRY_VOID(check_free(options.folder + '/' + name, content, files));
  for (const auto& [name, content] : made) {
    MUSTER_TRY_VOID(files.write(options.folder + '/' + name, content));
    clicks.names.push_back(name);
  }
  return clicks;
}

}  // namespace muster::data
