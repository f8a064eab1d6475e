#include "muster/data/mnist.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "muster/data/buffer_pool.h"
#include "muster/data/idx.h"
#include "muster/data/node.h"
#include "muster/data/row_order.h"

namespace muster::data {
namespace {

constexpr std::uint32_t side = 28;
constexpr std::size_t image_bytes = side * side;
constexpr std::uint32_t label_max = 9;
constexpr std::size_t rows_max = 1U << 30;  // row numbers are 32 bits wide, and 784 GB is no MNIST

struct Digits {
  // image_bytes for each row from images_begin on: the bytes of the first file where they were read, its
  // header included, then those of the others. Most folders hold one file, and need no copy.
  std::vector<std::byte> images;
  std::size_t images_begin = 0;
  std::vector<std::uint32_t> labels;

  std::size_t image_count() const { return (images.size() - images_begin) / image_bytes; }
  const std::byte* image(std::size_t row) const { return images.data() + images_begin + row * image_bytes; }
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
    if (header.sizes[axis] != side)
      return fail(Code::corrupt,
                  fmt::format("'{}' holds no MNIST images: byte {} says {} pixels where {} were expected",
                              path, 4 + 4 * axis, header.sizes[axis], side));
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
  if (digits.labels.size() > rows_max)
    return fail(Code::invalid_argument, fmt::format("'{}' holds {} digits; at most {} can be used",
                                                    options.folder, digits.labels.size(), rows_max));
  return digits;
}

Result<> check(const MnistOptions& options) {
  if (!options.usage.empty() && options.usage != "train" && options.usage != "test" && options.usage != "all")
    return fail(Code::invalid_argument,
                fmt::format("usage is '{}', it must be 'train', 'test' or 'all'", options.usage));
  if (options.num_samples && *options.num_samples < 1)
    return fail(Code::invalid_argument,
                fmt::format("num_samples is {}, it must be at least 1", *options.num_samples));
  if (options.num_shards.has_value() != options.shard_id.has_value())
    return fail(Code::invalid_argument, "num_shards and shard_id go together: one of them is missing");
  if (!options.num_shards) return {};
  if (*options.num_shards < 1 || *options.num_shards > std::numeric_limits<std::int32_t>::max())
    return fail(Code::invalid_argument,
                fmt::format("num_shards is {}, it must be at least 1", *options.num_shards));
  if (*options.shard_id < 0 || *options.shard_id >= *options.num_shards)
    return fail(Code::invalid_argument,
                fmt::format("shard_id is {}, it must be 0 to {} (num_shards is {})", *options.shard_id,
                            *options.num_shards - 1, *options.num_shards));
  return {};
}

class MnistStream final : public Stream {
 public:
  MnistStream(const Digits& digits, const BufferPool& pool, std::vector<std::uint32_t> order)
      : digits_(digits), pool_(pool), order_(std::move(order)) {}

  Result<std::optional<Block>> next(std::size_t want) override {
    const std::size_t rows = std::min(want, order_.size() - position_);
    if (rows == 0) return std::nullopt;
    Tensor images = pool_.make(DType::uint8, {static_cast<std::int64_t>(rows), side, side, 1});
    Tensor labels = pool_.make(DType::uint32, {static_cast<std::int64_t>(rows)});
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t row = order_[position_ + i];
      std::memcpy(images.bytes() + i * image_bytes, digits_.image(row), image_bytes);
      labels.data<std::uint32_t>()[i] = digits_.labels[row];
    }
    position_ += rows;
    return Block{rows, {std::move(images), std::move(labels)}};
  }

 private:
  const Digits& digits_;
  const BufferPool& pool_;
  const std::vector<std::uint32_t> order_;
  std::size_t position_ = 0;
};

class MnistNode final : public Node {
 public:
  MnistNode(Digits digits, const MnistOptions& options)
      : digits_(std::move(digits)),
        order_{.rows = static_cast<std::uint32_t>(digits_.labels.size()),
               .shuffle = options.shuffle.value_or(true),
               .num_shards = static_cast<std::uint32_t>(options.num_shards.value_or(1)),
               .shard_id = static_cast<std::uint32_t>(options.shard_id.value_or(0))},
        size_(shard_size(order_.rows, order_.num_shards)) {
    if (options.num_samples) size_ = std::min(size_, *options.num_samples);
  }

  const std::vector<Column>& columns() const override { return columns_; }
  std::int64_t size() const override { return size_; }
  bool foreign() const override { return false; }
  std::unique_ptr<Stream> open(Pass pass) const override {
    auto order = row_order(order_, pass.seed, pass.epoch);
    order.resize(static_cast<std::size_t>(size_));
    return std::make_unique<MnistStream>(digits_, pool_, std::move(order));
  }

 private:
  const std::vector<Column> columns_ = {{"image", DType::uint8, Shape{side, side, 1}},
                                        {"label", DType::uint32, Shape{}}};
  const Digits digits_;
  const RowOrderOptions order_;
  std::int64_t size_;
  const BufferPool pool_;
};

}  // namespace

Dataset mnist(const MnistOptions& options, const Files& files) {
  return Dataset([&]() -> Result<NodePtr> {
    MUSTER_TRY_VOID(check(options));
    MUSTER_TRY(auto digits, read_digits(options, files));
    return std::make_shared<MnistNode>(std::move(digits), options);
  }());
}

}  // namespace muster::data
