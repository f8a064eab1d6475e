#include "muster/data/mnist.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "muster/data/idx.h"
#include "muster/data/source.h"

namespace muster::data {
namespace {

constexpr std::uint32_t mnist_side = 28;
constexpr std::size_t mnist_image_bytes = mnist_side * mnist_side;
constexpr std::uint32_t label_max = 9;

struct Digits {
  // mnist_image_bytes for each row from images_begin on: the bytes of the first file where they were read,
  // its header included, then those of the others. Most folders hold one file, and need no copy.
  std::vector<std::byte> images;
  std::size_t images_begin = 0;
  std::vector<std::uint32_t> labels;

  std::size_t image_count() const { return (images.size() - images_begin) / mnist_image_bytes; }
  const std::byte* image(std::size_t row) const {
    return images.data() + images_begin + row * mnist_image_bytes;
  }
};

// The label file that belongs to an image file: "train-images-idx3-ubyte" and "train-labels-idx1-ubyte".
std::string label_file_of(std::string name) {
  name.replace(name.find("images"), 6, "labels");
  name.replace(name.find("idx3"), 4, "idx1");
  return name;
}

bool is_image_file(std::string_view name, std::string_view prefix) {
  return name.find(fmt::format("{}-images", prefix)) != name.npos && name.find("idx3-ubyte") != name.npos;
}

Result<std::vector<std::string>> image_files(const MnistOptions& options, const Files& files) {
  const std::string prefix = options.usage == "train" ? "train" : options.usage == "test" ? "t10k" : "";
  MUSTER_TRY(auto names, files.list(options.folder));
  std::erase_if(names, [&](const std::string& name) { return !is_image_file(name, prefix); });
  if (names.empty())
    return fail(Code::not_found, fmt::format("folder '{}' holds no MNIST images: a file named like "
                                             "'{}-images-idx3-ubyte' was expected",
                                             options.folder, prefix.empty() ? "train" : prefix));
  return names;
}

Result<> append_images(Digits& digits, const std::string& path, const Files& files) {
  MUSTER_TRY(auto file, files.read(path));
  MUSTER_TRY(const IdxHeader header, read_idx_header(file, 3, path));
  for (std::size_t axis = 1; axis < 3; ++axis)
    if (header.sizes[axis] != mnist_side)
      return fail(Code::corrupt,
                  fmt::format("'{}' holds no MNIST images: byte {} says {} pixels where {} were expected",
                              path, 4 + 4 * axis, header.sizes[axis], mnist_side));
  if (digits.images.empty()) {
    digits.images = std::move(file);
    digits.images_begin = header.data_offset;
  } else {
    digits.images.insert(digits.images.end(), file.begin() + static_cast<std::ptrdiff_t>(header.data_offset),
                         file.end());
  }
  return {};
}

Result<> append_labels(Digits& digits, const std::string& path, const Files& files) {
  MUSTER_TRY(const auto file, files.read(path));
  MUSTER_TRY(const IdxHeader header, read_idx_header(file, 1, path));
  for (std::size_t offset = header.data_offset; offset < file.size(); ++offset) {
    const auto label = std::to_integer<std::uint32_t>(file[offset]);
    if (label > label_max)
      return fail(Code::corrupt,
                  fmt::format("'{}' holds no MNIST labels: byte {} holds {} where 0 to {} was expected", path,
                              offset, label, label_max));
    digits.labels.push_back(label);
  }
  return {};
}

Result<Digits> read_digits(const MnistOptions& options, const Files& files) {
  MUSTER_TRY(const auto names, image_files(options, files));
  Digits digits;
  for (const std::string& name : names) {
    const std::string image_path = options.folder + '/' + name;
    const std::string label_path = options.folder + '/' + label_file_of(name);
    MUSTER_TRY_VOID(append_images(digits, image_path, files));
    MUSTER_TRY_VOID(append_labels(digits, label_path, files));
    if (digits.image_count() != digits.labels.size())
      return fail(
          Code::corrupt,
          fmt::format(
              "'{}' and '{}' do not belong together: {} images and {} labels up to here (byte 4 of each "
              "says how many)",
              image_path, label_path, digits.image_count(), digits.labels.size()));
  }
  if (digits.labels.empty())
    return fail(Code::corrupt,
                fmt::format("the MNIST files in '{}' hold no digits: byte 4 says 0", options.folder));
  if (digits.labels.size() > source_rows_max)
    return fail(Code::invalid_argument, fmt::format("'{}' holds {} digits; at most {} can be used",
                                                    options.folder, digits.labels.size(), source_rows_max));
  return digits;
}

class DigitSource final : public TableSource {
 public:
  explicit DigitSource(Digits digits)
      : TableSource(
            {{"image", DType::uint8, Shape{mnist_side, mnist_side, 1}}, {"label", DType::uint32, Shape{}}}),
        digits_(std::move(digits)) {}
  std::uint32_t rows() const override { return static_cast<std::uint32_t>(digits_.labels.size()); }
  std::span<const std::uint32_t> labels() const override { return digits_.labels; }

 protected:
  void copy(std::size_t column, std::uint32_t row, std::byte* out) const override {
    if (column == 0)
      std::memcpy(out, digits_.image(row), mnist_image_bytes);
    else
      std::memcpy(out, &digits_.labels[row], sizeof digits_.labels[row]);
  }

 private:
  const Digits digits_;
};

}  // namespace

Dataset mnist(const MnistOptions& options, const Files& files) {
  return Dataset([&]() -> Result<NodePtr> {
    MUSTER_TRY_VOID(check_usage(options.usage, {"train", "test", "all"}));
    MUSTER_TRY(auto digits, read_digits(options, files));
    return make_source(std::make_shared<DigitSource>(std::move(digits)), options.rows());
  }());
}

}  // namespace muster::data
