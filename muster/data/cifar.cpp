#include "muster/data/cifar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "muster/data/source.h"

namespace muster::data {
namespace {

constexpr std::size_t cifar_side = 32;
constexpr std::size_t cifar_channels = 3;
constexpr std::size_t plane_bytes = cifar_side * cifar_side;
constexpr std::size_t image_bytes = cifar_channels * plane_bytes;

struct Label {
  const char* name;
  std::uint8_t value_max;
};

// What distinguishes the two kinds of files.
struct Format {
  const char* title;
  std::vector<Label> labels;  // one byte each, in front of the image
  std::size_t class_label;    // which of them says the class
  const char* train;          // how the names of the files begin
  const char* test;

  std::size_t record_bytes() const { return labels.size() + image_bytes; }
};

const Format format10{"CIFAR-10", {{"label", 9}}, 0, "data_batch", "test_batch"};
const Format format100{"CIFAR-100", {{"coarse_label", 19}, {"fine_label", 99}}, 1, "train", "test"};

Result<std::vector<std::string>> record_files(const Format& format, const SourceOptions& options,
                                              const Files& files) {
  MUSTER_TRY(auto names, files.list(options.folder));
  std::vector<std::string> prefixes;
  if (options.usage != "test") prefixes.emplace_back(format.train);
  if (options.usage != "train") prefixes.emplace_back(format.test);
  std::erase_if(names, [&](const std::string& name) {
    const auto begins = [&](const std::string& prefix) { return name.starts_with(prefix); };
    return !name.ends_with(".bin") || std::none_of(prefixes.begin(), prefixes.end(), begins);
  });
  if (names.empty())
    return fail(Code::not_found,
                fmt::format("folder '{}' holds no {} in the binary version: a file named like '{}*.bin' was "
                            "expected",
                            options.folder, format.title, prefixes.front()));
  return names;
}

Result<> check_records(const Format& format, std::span<const std::byte> file, const std::string& path) {
  const std::size_t rest = file.size() % format.record_bytes();
  if (rest != 0)
    return fail(Code::corrupt,
                fmt::format("'{}' is no whole number of {} records of {} bytes: the record at byte {} ends "
                            "after {} bytes, at the end of the file",
                            path, format.title, format.record_bytes(), file.size() - rest, rest));
  for (std::size_t record = 0; record < file.size(); record += format.record_bytes())
    for (std::size_t i = 0; i < format.labels.size(); ++i) {
      const auto value = std::to_integer<unsigned>(file[record + i]);
      if (value > format.labels[i].value_max)
        return fail(Code::corrupt,
                    fmt::format("'{}' holds no {} records: byte {} holds {} where a {} of 0 to "
                                "{} was expected",
                                path, format.title, record + i, value, format.labels[i].name,
                                format.labels[i].value_max));
    }
  return {};
}

std::vector<Column> columns_of(const Format& format) {
  std::vector<Column> columns = {{"image", DType::uint8, Shape{cifar_side, cifar_side, cifar_channels}}};
  for (const Label& label : format.labels) columns.push_back({label.name, DType::uint32, Shape{}});
  return columns;
}

class CifarSource final : public TableSource {
 public:
  CifarSource(const Format& format, std::vector<std::vector<std::byte>> files)
      : TableSource(columns_of(format)), format_(format), files_(std::move(files)) {
    for (const auto& file : files_)
      for (std::size_t offset = 0; offset < file.size(); offset += format_.record_bytes()) {
        records_.push_back(file.data() + offset);
        labels_.push_back(std::to_integer<std::uint32_t>(file[offset + format_.class_label]));
      }
  }
  std::uint32_t rows() const override { return static_cast<std::uint32_t>(records_.size()); }
  std::span<const std::uint32_t> labels() const override { return labels_; }

 protected:
  void copy(std::size_t column, std::uint32_t row, std::byte* out) const override {
    const std::byte* record = records_[row];
    if (column > 0) {
      const auto value = std::to_integer<std::uint32_t>(record[column - 1]);
      std::memcpy(out, &value, sizeof value);
      return;
    }
    const std::byte* red = record + format_.labels.size();  // one plane a channel in the file
    const std::byte* green = red + plane_bytes;
    const std::byte* blue = green + plane_bytes;
    for (std::size_t i = 0; i < plane_bytes; ++i) {
      out[cifar_channels * i] = red[i];
      out[cifar_channels * i + 1] = green[i];
      out[cifar_channels * i + 2] = blue[i];
    }
  }

 private:
  const Format& format_;
  const std::vector<std::vector<std::byte>> files_;
  std::vector<const std::byte*> records_;  // into files_
  std::vector<std::uint32_t> labels_;
};

Result<NodePtr> open_files(const Format& format, const SourceOptions& options, const Files& files) {
  MUSTER_TRY_VOID(check_usage(options.usage, {"train", "test", "all"}));
  MUSTER_TRY(const auto names, record_files(format, options, files));
  std::vector<std::vector<std::byte>> contents;
  std::size_t rows = 0;
  for (const std::string& name : names) {
    const std::string path = options.folder + '/' + name;
    MUSTER_TRY(auto file, files.read(path));
    MUSTER_TRY_VOID(check_records(format, file, path));
    rows += file.size() / format.record_bytes();
    contents.push_back(std::move(file));
  }
  if (rows == 0)
    return fail(Code::corrupt, fmt::format("the {} files in '{}' hold no records: they end at byte 0",
                                           format.title, options.folder));
  if (rows > source_rows_max)
    return fail(Code::invalid_argument, fmt::format("'{}' holds {} records; at most {} can be used",
                                                    options.folder, rows, source_rows_max));
  return make_source(std::make_shared<CifarSource>(format, std::move(contents)), options.rows());
}

}  // namespace

Dataset cifar10(const SourceOptions& options, const Files& files) {
  return Dataset(open_files(format10, options, files));
}

Dataset cifar100(const SourceOptions& options, const Files& files) {
  return Dataset(open_files(format100, options, files));
}

}  // namespace muster::data
