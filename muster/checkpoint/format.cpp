#include "muster/checkpoint/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "muster/base/protobuf.h"
#include "muster/checkpoint/mesh_layout.h"

namespace muster::checkpoint {
namespace {

using protobuf::delimited;
using protobuf::fixed32;
using protobuf::fixed64;
using protobuf::varint;
using protobuf::varint_bytes;
using protobuf::Writer;

// ---- Protocol buffers, as far as this format needs them ---------------------------------------------------

constexpr std::uint64_t field_value = 1;    // of the file
constexpr std::uint64_t field_name = 1;     // of a value
constexpr std::uint64_t field_tensor = 2;   // of a value
constexpr std::uint64_t field_dims = 1;     // of a tensor, once for each axis
constexpr std::uint64_t field_type = 2;     // of a tensor
constexpr std::uint64_t field_content = 3;  // of a tensor
constexpr std::size_t varint_bytes_max = 10;
constexpr std::size_t axes_max = 64;
constexpr std::uint64_t text_bytes_max = 1 << 16;  // of a name or a dtype

// A file of which heads are read byte by byte, through a small window.
class Window {
 public:
  explicit Window(const InputFile& file) : file_(file), size_(file.size_bytes()) {}

  std::uint64_t size_bytes() const { return size_; }
  Result<std::byte> byte(std::uint64_t at) {
    if (at < begin_ || at >= begin_ + filled_) {
      begin_ = at;
      filled_ = std::min<std::uint64_t>(bytes_.size(), size_ - at);
      MUSTER_TRY_VOID(file_.read_at(begin_, std::span(bytes_).first(filled_)));
    }
    return bytes_[at - begin_];
  }
  Result<std::string> text(ByteRange range) const {
    std::string made(range.size, '\0');
    MUSTER_TRY_VOID(file_.read_at(range.begin, std::as_writable_bytes(std::span(made))));
    return made;
  }

 private:
  const InputFile& file_;
  std::uint64_t size_;
  std::uint64_t begin_ = 0;
  std::uint64_t filled_ = 0;
  std::array<std::byte, 4096> bytes_{};
};

// Reads forward; the first thing that cannot be is the error.
class Reader {
 public:
  Reader(Window& file, ByteRange range, const std::string& path)
      : file_(&file), at_(range.begin), end_(range.begin + range.size), path_(&path) {}

  bool at_end() const { return at_ == end_; }
  std::uint64_t offset() const { return at_; }
  ByteRange rest() const { return {at_, end_ - at_}; }

  tl::unexpected<Error> bad(std::string_view what, std::uint64_t offset) const {
    return fail(Code::corrupt, fmt::format("checkpoint '{}', byte {}: {}", *path_, offset, what));
  }

  Result<std::uint64_t> number() {
    const std::uint64_t begin = offset();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < varint_bytes_max; ++i) {
      if (at_end()) return bad("the file ends inside of a number", begin);
      MUSTER_TRY(const std::byte read, file_->byte(at_++));
      const auto byte = std::to_integer<std::uint64_t>(read);
      value |= (byte & 0x7F) << (7 * i);
      if (byte < 0x80) return value;
    }
    return bad("a number has more than ten bytes", begin);
  }

  Result<Reader> block() {
    const std::uint64_t begin = offset();
    MUSTER_TRY(const std::uint64_t size, number());
    if (size > end_ - at_)
      return bad(fmt::format("{} bytes are announced, {} are left", size, end_ - at_), begin);
    const Reader inside(*file_, {at_, size}, *path_);
    at_ += size;
    return inside;
  }

  // Field number and wire type.
  Result<std::pair<std::uint64_t, std::uint64_t>> tag() {
    MUSTER_TRY(const std::uint64_t value, number());
    return std::pair{value >> 3, value & 7};
  }

  Result<> skip(std::uint64_t type) {
    const std::uint64_t begin = offset();
    if (type == varint) {
      MUSTER_TRY([[maybe_unused]] const std::uint64_t ignored, number());
      return {};
    }
    if (type == delimited) {
      MUSTER_TRY([[maybe_unused]] const Reader ignored, block());
      return {};
    }
    if (type != fixed64 && type != fixed32)
      return bad(fmt::format("{} is no kind of field that there is", type), begin);
    const std::size_t size = type == fixed64 ? 8 : 4;
    if (size > end_ - at_) return bad("the file ends inside of a number", begin);
    at_ += size;
    return {};
  }

  Result<std::string> text() const {
    if (end_ - at_ > text_bytes_max) return bad(fmt::format("a name of {} bytes is none", end_ - at_), at_);
    return file_->text(rest());
  }

 private:
  Window* file_;
  std::uint64_t at_;
  std::uint64_t end_;
  const std::string* path_;
};

// ---- Names of dtypes --------------------------------------------------------------------------------------

constexpr std::pair<DType, std::string_view> type_names[] = {
    {DType::float32, "Float32"}, {DType::float64, "Float64"}, {DType::int32, "Int32"},
    {DType::int64, "Int64"},     {DType::uint8, "UInt8"},     {DType::uint32, "UInt32"},
    {DType::int8, "Int8"},       {DType::bool_, "Bool"},      {DType::bfloat16, "BFloat16"},
    {DType::float16, "Float16"}, {DType::int16, "Int16"},     {DType::uint16, "UInt16"},
    {DType::uint64, "UInt64"},
};

std::string_view type_name(DType dtype) {
  for (const auto& [known, name] : type_names)
    if (known == dtype) return name;
  MUSTER_CHECK(false, "a dtype has no name in checkpoints");
  return {};
}

std::optional<DType> type_named(std::string_view text) {
  for (const auto& [dtype, name] : type_names)
    if (name == text) return dtype;
  return std::nullopt;
}

// ---- One tensor -------------------------------------------------------------------------------------------

constexpr std::string_view text_type = "str";  // of an entry that is no tensor: characters of four bytes
constexpr std::uint64_t layout_bytes_max = std::uint64_t{64} << 20;
constexpr std::size_t character_bytes = 4;
constexpr std::string_view checksum_mark = "crc_num";  // behind the entries, and ten digits
constexpr std::uint64_t checksum_bytes = checksum_mark.size() + 10;

// One part of a tensor as the file has it.
struct Part {
  std::vector<std::int64_t> dims;
  std::string type;
  ByteRange content;
  std::uint64_t offset = 0;
};

// Everything of a tensor message that comes before its content.
std::vector<std::byte> head_of(DType dtype, const Shape& shape) {
  Writer head;
  for (const std::int64_t size : shape) {
    head.tag(field_dims, varint);
    head.number(static_cast<std::uint64_t>(size));
  }
  head.text(field_type, type_name(dtype));
  return head.take();
}

// What stands before the content of one part.
std::vector<std::byte> part_head(const std::string& name, std::span<const std::byte> head,
                                 std::size_t content_bytes) {
  Writer out;
  const std::size_t tensor_bytes = head.size() + 1 + varint_bytes(content_bytes) + content_bytes;
  const std::size_t name_bytes = 1 + varint_bytes(name.size()) + name.size();
  out.begin_block(field_value, name_bytes + 1 + varint_bytes(tensor_bytes) + tensor_bytes);
  out.text(field_name, name);
  out.begin_block(field_tensor, tensor_bytes);
  out.append(head);
  out.begin_block(field_content, content_bytes);
  return out.take();
}

Result<Part> read_tensor(Reader reader) {
  Part part;
  part.offset = reader.offset();
  const auto add_dim = [&](std::uint64_t size) -> Result<> {
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
        part.dims.size() == axes_max)
      return reader.bad("the sizes of a tensor are not what sizes can be", reader.offset());
    part.dims.push_back(static_cast<std::int64_t>(size));
    return {};
  };
  while (!reader.at_end()) {
    MUSTER_TRY(const auto tag, reader.tag());
    const auto [field, type] = tag;
    if (field == field_dims && type == varint) {
      MUSTER_TRY(const std::uint64_t size, reader.number());
      MUSTER_TRY_VOID(add_dim(size));
    } else if (field == field_dims && type == delimited) {  // packed, as newer writers may
      MUSTER_TRY(Reader packed, reader.block());
      while (!packed.at_end()) {
        MUSTER_TRY(const std::uint64_t size, packed.number());
        MUSTER_TRY_VOID(add_dim(size));
      }
    } else if (field == field_type && type == delimited) {
      MUSTER_TRY(const Reader text, reader.block());
      MUSTER_TRY(part.type, text.text());
    } else if (field == field_content && type == delimited) {
      MUSTER_TRY(const Reader content, reader.block());
      part.content = content.rest();
    } else {
      MUSTER_TRY_VOID(reader.skip(type));
    }
  }
  return part;
}

// ---- Texts ------------------------------------------------------------------------------------------------

// The layout of pieces is ASCII.
Result<std::string> text_of(const Part& part, Window& file, const Reader& reader) {
  if (part.content.size > layout_bytes_max || part.content.size % character_bytes != 0)
    return reader.bad("the layout of its pieces is no text", part.offset);
  MUSTER_TRY(const std::string wide, file.text(part.content));
  std::string text;
  for (std::size_t at = 0; at < wide.size(); at += character_bytes) text += wide[at];
  return text;
}

Result<bool> is_checksum(Window& file, ByteRange rest) {
  if (rest.size != checksum_bytes) return false;
  MUSTER_TRY(const std::string text, file.text(rest));
  return text.starts_with(checksum_mark);
}

// ---- Parts to entries -------------------------------------------------------------------------------------

struct Collected {
  std::string name;
  std::vector<Part> parts;
};

// Whether code that multiplies the sizes stays within its numbers, empty axes or not.
bool can_be_multiplied(std::span<const std::int64_t> dims, DType dtype) {
  auto product = static_cast<std::int64_t>(size_bytes(dtype));
  return std::all_of(dims.begin(), dims.end(), [&](std::int64_t size) {
    return !__builtin_mul_overflow(product, std::max<std::int64_t>(size, 1), &product);
  });
}

Result<StoredTensor> join(const Collected& collected, const Reader& file) {
  const Part& first = collected.parts.front();
  const auto dtype = type_named(first.type);
  if (!dtype)
    return fail(Code::not_provided, fmt::format("checkpoint: '{}' holds elements of type '{}', which Muster "
                                                "has not; leave it out when writing",
                                                collected.name, first.type));
  std::vector<std::int64_t> dims = first.dims;
  std::uint64_t announced = size_bytes(*dtype);
  std::uint64_t found = 0;
  for (const Part& part : collected.parts) found += part.content.size;
  if (dims.size() == 1 && dims[0] == 0 && found > 0) dims.clear();  // a scalar of older files
  if (!can_be_multiplied(dims, *dtype))
    return file.bad(
        fmt::format("'{}' {} has more elements than can be", collected.name, to_string(Shape(dims))),
        first.offset);
  for (const std::int64_t size : dims) {
    const auto factor = static_cast<std::uint64_t>(size);
    if (factor != 0 && announced > (found + size_bytes(*dtype)) / factor + 1)
      return file.bad(fmt::format("'{}' announces more elements than it holds", collected.name),
                      first.offset);
    announced *= factor;
  }
  if (announced != found)
    return file.bad(fmt::format("'{}' {} has {} bytes of elements, not {}", collected.name,
                                to_string(Shape(dims)), found, announced),
                    first.offset);
  StoredTensor made{.name = collected.name, .dtype = *dtype, .shape = Shape(std::move(dims))};
  for (const Part& part : collected.parts)
    if (part.content.size > 0) made.ranges.push_back(part.content);
  return made;
}

// Bytes in memory as a file.
class BytesFile final : public InputFile {
 public:
  explicit BytesFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  Result<> read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset > bytes_.size() || into.size() > bytes_.size() - offset)
      return fail(Code::corrupt, fmt::format("{} bytes end before byte {}", bytes_.size(), offset));
    if (!into.empty()) std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

bool says_where_rows_are(std::string_view name, DType dtype, const Shape& shape) {
  return name.ends_with(rows_suffix) && dtype == DType::uint8 && shape.rank() == 1;
}

std::size_t size_bytes(std::span<const Entry> entries) {
  std::size_t total = 0;
  for (const Entry& entry : entries)
    if (entry.value.absence() == nullptr) total += entry.value.size_bytes();
  return total;
}

std::vector<FilePart> parts_of(const std::string& name, DType dtype, const Shape& shape,
                               std::size_t part_bytes) {
  const std::vector<std::byte> head = head_of(dtype, shape);
  std::uint64_t rest = static_cast<std::uint64_t>(shape.elements()) * size_bytes(dtype);
  std::vector<FilePart> made;
  do {
    const std::uint64_t size = std::min<std::uint64_t>(part_bytes, rest);
    made.push_back({part_head(name, head, size), size});
    rest -= size;
  } while (rest > 0);
  return made;
}

Pieces encode_pieces(std::span<const Entry> entries, std::size_t part_bytes) {
  Pieces made;
  for (const Entry& entry : entries) {
    const Tensor& value = entry.value;
    std::span<const std::byte> rest(value.bytes(), value.size_bytes());
    for (FilePart& part : parts_of(entry.name, value.dtype(), value.shape(), part_bytes)) {
      made.heads.push_back(std::move(part.head));
      made.pieces.emplace_back(made.heads.back());
      made.pieces.push_back(rest.first(part.content_bytes));
      rest = rest.subspan(part.content_bytes);
    }
  }
  return made;
}

std::vector<std::byte> encode(std::span<const Entry> entries, std::size_t part_bytes) {
  const Pieces made = encode_pieces(entries, part_bytes);
  std::vector<std::byte> bytes;
  for (const auto piece : made.pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

std::vector<std::byte> layout_entry(std::string_view layout) {
  std::vector<std::byte> wide(layout.size() * character_bytes);
  for (std::size_t at = 0; at < layout.size(); ++at)
    wide[at * character_bytes] = static_cast<std::byte>(layout[at]);
  Writer head;
  head.tag(field_dims, varint);
  head.number(1);
  head.text(field_type, text_type);
  std::vector<std::byte> made = part_head(std::string(layout_metadata), head.take(), wide.size());
  made.insert(made.end(), wide.begin(), wide.end());
  return made;
}

Result<std::vector<StoredTensor>> index(const InputFile& file, const std::string& path, std::string* layout) {
  Window window(file);
  Reader reader(window, {0, window.size_bytes()}, path);
  std::vector<Collected> collected;
  while (!reader.at_end()) {
    const std::size_t begin = reader.offset();
    MUSTER_TRY(const bool is_over, is_checksum(window, reader.rest()));
    if (is_over) break;
    MUSTER_TRY(const auto tag, reader.tag());
    if (tag != std::pair<std::uint64_t, std::uint64_t>{field_value, delimited})
      return reader.bad("this is no entry of a checkpoint", begin);
    MUSTER_TRY(Reader value, reader.block());
    std::string name;
    std::optional<Part> part;
    while (!value.at_end()) {
      MUSTER_TRY(const auto inner, value.tag());
      if (inner.second == delimited && (inner.first == field_name || inner.first == field_tensor)) {
        MUSTER_TRY(const Reader block, value.block());
        if (inner.first == field_name) {
          MUSTER_TRY(name, block.text());
        } else {
          MUSTER_TRY(part, read_tensor(block));
        }
      } else {
        MUSTER_TRY_VOID(value.skip(inner.second));
      }
    }
    if (name.empty()) return reader.bad("an entry has no name", begin);
    if (part && part->type == text_type && name == layout_metadata && layout != nullptr) {
      MUSTER_TRY(*layout, text_of(*part, window, reader));
    }
    if (!part || part->type == text_type) continue;
    if (!collected.empty() && collected.back().name == name)
      collected.back().parts.push_back(*std::move(part));
    else
      collected.push_back({std::move(name), {*std::move(part)}});
  }
  std::vector<StoredTensor> tensors;
  for (const Collected& one : collected) {
    MUSTER_TRY(StoredTensor tensor, join(one, reader));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<Tensor> read_tensor(const InputFile& file, const StoredTensor& stored) {
  Tensor tensor(stored.dtype, stored.shape);
  std::span<std::byte> rest(tensor.bytes(), tensor.size_bytes());
  for (const ByteRange& range : stored.ranges) {
    MUSTER_TRY_VOID(file.read_at(range.begin, rest.first(range.size)));
    rest = rest.subspan(range.size);
  }
  return tensor;
}

Result<std::vector<Entry>> decode(std::span<const std::byte> file, const std::string& path) {
  const BytesFile bytes(file);
  MUSTER_TRY(const std::vector<StoredTensor> tensors, index(bytes, path));
  std::vector<Entry> entries;
  for (const StoredTensor& stored : tensors) {
    MUSTER_TRY(Tensor tensor, read_tensor(bytes, stored));
    entries.push_back({stored.name, std::move(tensor)});
  }
  return entries;
}

}  // namespace muster::checkpoint
