#include "muster/data/token_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "muster/data/source.h"

namespace muster::data {
namespace {

Error read_error(const std::string& path, int number) {
  const Code code = number == ENOENT ? Code::not_found : Code::io;
  return {code, fmt::format("cannot read '{}': {}", path, std::strerror(number))};
}

// Open for reading; any thread may read.
class OpenFile {
 public:
  static Result<std::shared_ptr<const OpenFile>> open(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return fail(read_error(path, errno));
    auto made = std::shared_ptr<OpenFile>(new OpenFile(descriptor, path));
    struct stat found = {};
    if (::fstat(descriptor, &found) != 0) return fail(read_error(path, errno));
    if (!S_ISREG(found.st_mode)) return fail(Code::invalid_argument, fmt::format("'{}' is no file", path));
    made->size_ = found.st_size;
    return made;
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(descriptor_); }

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }

  Result<> read(std::int64_t offset, std::byte* to, std::int64_t bytes) const {
    while (bytes > 0) {
      const ssize_t got = ::pread(descriptor_, to, static_cast<std::size_t>(bytes), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail(read_error(path_, errno));
      if (got == 0)
        return fail(Code::corrupt,
                    fmt::format("'{}' ends at byte {}: it had {} bytes when the dataset was made", path_,
                                offset, size_));
      offset += got;
      to += got;
      bytes -= got;
    }
    return {};
  }

 private:
  OpenFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_;
  std::string path_;
  std::int64_t size_ = 0;
};

class TokenSource final : public Source {
 public:
  TokenSource(std::shared_ptr<const OpenFile> file, const TokenFileOptions& options, std::uint32_t rows)
      : file_(std::move(file)),
        window_(options.window),
        dtype_(options.dtype),
        rows_(rows),
        columns_{{"input", DType::int32, Shape{options.window}},
                 {"target", DType::int32, Shape{options.window}}} {}

  const std::vector<Column>& columns() const override { return columns_; }
  std::uint32_t rows() const override { return rows_; }

  Result<std::vector<Tensor>> read(std::span<const std::uint32_t> rows,
                                   const BufferPool& pool) const override {
    const Shape shape{static_cast<std::int64_t>(rows.size()), window_};
    std::vector<Tensor> values{pool.make(DType::int32, shape), pool.make(DType::int32, shape)};
    const auto count = static_cast<std::size_t>(window_ + 1);
    const auto width = static_cast<std::int64_t>(size_bytes(dtype_));
    std::vector<std::byte> bytes(count * static_cast<std::size_t>(width));
    std::vector<std::int32_t> tokens(count);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      MUSTER_TRY_VOID(
          file_->read(rows[k] * window_ * width, bytes.data(), static_cast<std::int64_t>(bytes.size())));
      cast_elements(bytes.data(), dtype_, reinterpret_cast<std::byte*>(tokens.data()), DType::int32, count);
      if (const auto least = std::min_element(tokens.begin(), tokens.end()); *least < 0)
        return fail(Code::corrupt,
                    fmt::format("'{}': token {} is {} as int32: ids are 0 to 2147483647", file_->path(),
                                rows[k] * window_ + (least - tokens.begin()), *least));
      for (std::size_t column = 0; column < 2; ++column)
        std::memcpy(values[column].data<std::int32_t>() + static_cast<std::int64_t>(k) * window_,
                    tokens.data() + column, static_cast<std::size_t>(window_) * sizeof(std::int32_t));
    }
    return values;
  }

 private:
  const std::shared_ptr<const OpenFile> file_;
  const std::int64_t window_;
  const DType dtype_;
  const std::uint32_t rows_;
  const std::vector<Column> columns_;
};

Result<std::uint32_t> row_count(const TokenFileOptions& options, const OpenFile& file) {
  const auto width = static_cast<std::int64_t>(size_bytes(options.dtype));
  if (file.size() % width != 0)
    return fail(Code::corrupt,
                fmt::format("'{}' has {} bytes, no whole number of {} ids of {} bytes: was it written as "
                            "another dtype?",
                            file.path(), file.size(), to_string(options.dtype), width));
  const std::int64_t tokens = file.size() / width;
  const std::int64_t rows = (tokens - 1) / options.window;
  if (tokens < 2 || rows < 1)
    return fail(Code::invalid_argument,
                fmt::format("'{}' has {} tokens; a window of {} and the one behind it take {}", file.path(),
                            tokens, options.window, options.window + 1));
  if (rows > static_cast<std::int64_t>(source_rows_max))
    return fail(Code::invalid_argument,
                fmt::format("'{}' has {} windows of {} tokens; at most {} can be used: take "
                            "longer windows",
                            file.path(), rows, options.window, source_rows_max));
  return static_cast<std::uint32_t>(rows);
}

Result<> check(const TokenFileOptions& options) {
  if (options.window < 1)
    return fail(Code::invalid_argument, fmt::format("window is {}, it must be at least 1", options.window));
  const DType dtype = options.dtype;
  if (dtype != DType::uint8 && dtype != DType::uint16 && dtype != DType::uint32 && dtype != DType::int32)
    return fail(Code::invalid_argument,
                fmt::format("dtype is {}, ids are uint8, uint16, uint32 or int32", to_string(dtype)));
  return {};
}

}  // namespace

Dataset token_file(const TokenFileOptions& options) {
  return Dataset([&]() -> Result<NodePtr> {
    MUSTER_TRY_VOID(check(options));
    MUSTER_TRY(auto file, OpenFile::open(options.file));
    MUSTER_TRY(const std::uint32_t rows, row_count(options, *file));
    return make_source(std::make_shared<TokenSource>(std::move(file), options, rows), options.rows);
  }());
}

}  // namespace muster::data
