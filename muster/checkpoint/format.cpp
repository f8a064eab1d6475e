#include "muster/checkpoint/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "muster/base/protobuf.h"

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

// Reads forward; the first thing that cannot be is the error.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::size_t offset, const std::string& path)
      : bytes_(bytes), offset_(offset), path_(path) {}

  bool at_end() const { return at_ == bytes_.size(); }
  std::size_t offset() const { return offset_ + at_; }

  tl::unexpected<Error> bad(std::string_view what, std::size_t offset) const {
    return fail(Code::corrupt, fmt::format("checkpoint '{}', byte {}: {}", path_, offset, what));
  }

  Result<std::uint64_t> number() {
    const std::size_t begin = offset();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < varint_bytes_max; ++i) {
      if (at_end()) return bad("the file ends inside of a number", begin);
      const auto byte = std::to_integer<std::uint64_t>(bytes_[at_++]);
      value |= (byte & 0x7F) << (7 * i);
      if (byte < 0x80) return value;
    }
    return bad("a number has more than ten bytes", begin);
  }

  Result<Reader> block() {
    const std::size_t begin = offset();
    MUSTER_TRY(const std::uint64_t size, number());
    if (size > bytes_.size() - at_)
      return bad(fmt::format("{} bytes are announced, {} are left", size, bytes_.size() - at_), begin);
    const Reader inside(bytes_.subspan(at_, size), offset(), path_);
    at_ += size;
    return inside;
  }

  // Field number and wire type.
  Result<std::pair<std::uint64_t, std::uint64_t>> tag() {
    MUSTER_TRY(const std::uint64_t value, number());
    return std::pair{value >> 3, value & 7};
  }

  Result<> skip(std::uint64_t type) {
    const std::size_t begin = offset();
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
    if (size > bytes_.size() - at_) return bad("the file ends inside of a number", begin);
    at_ += size;
    return {};
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t offset_;
  std::size_t at_ = 0;
  const std::string& path_;
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

// One part of a tensor as the file has it.
struct Part {
  std::vector<std::int64_t> dims;
  std::string type;
  std::span<const std::byte> content;
  std::size_t offset = 0;
};

// Everything of a tensor message that comes before its content.
std::vector<std::byte> head_of(const Tensor& tensor) {
  Writer head;
  for (const std::int64_t size : tensor.shape()) {
    head.tag(field_dims, varint);
    head.number(static_cast<std::uint64_t>(size));
  }
  head.text(field_type, type_name(tensor.dtype()));
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
      part.type = text.text();
    } else if (field == field_content && type == delimited) {
      MUSTER_TRY(const Reader content, reader.block());
      part.content = content.bytes();
    } else {
      MUSTER_TRY_VOID(reader.skip(type));
    }
  }
  return part;
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

Result<Entry> join(const Collected& collected, const Reader& file) {
  const Part& first = collected.parts.front();
  const auto dtype = type_named(first.type);
  if (!dtype)
    return fail(Code::not_provided, fmt::format("checkpoint: '{}' holds elements of type '{}', which Muster "
                                                "has not; leave it out when writing",
                                                collected.name, first.type));
  std::vector<std::int64_t> dims = first.dims;
  std::size_t announced = size_bytes(*dtype);
  std::size_t found = 0;
  for (const Part& part : collected.parts) found += part.content.size();
  if (dims.size() == 1 && dims[0] == 0 && found > 0) dims.clear();  // a scalar of older files
  if (!can_be_multiplied(dims, *dtype))
    return file.bad(
        fmt::format("'{}' {} has more elements than can be", collected.name, to_string(Shape(dims))),
        first.offset);
  for (const std::int64_t size : dims) {
    const auto factor = static_cast<std::size_t>(size);
    if (factor != 0 && announced > (found + size_bytes(*dtype)) / factor + 1)
      return file.bad(fmt::format("'{}' announces more elements than it holds", collected.name),
                      first.offset);
    announced *= factor;
  }
  if (announced != found)
    return file.bad(fmt::format("'{}' {} has {} bytes of elements, not {}", collected.name,
                                to_string(Shape(dims)), found, announced),
                    first.offset);
  Entry entry{collected.name, Tensor(*dtype, Shape(std::move(dims)))};
  std::size_t at = 0;
  for (const Part& part : collected.parts) {
    if (!part.content.empty())
      std::memcpy(entry.value.bytes() + at, part.content.data(), part.content.size());
    at += part.content.size();
  }
  return entry;
}

}  // namespace

std::size_t size_bytes(std::span<const Entry> entries) {
  std::size_t total = 0;
  for (const Entry& entry : entries)
    if (entry.value.absence() == nullptr) total += entry.value.size_bytes();
  return total;
}

Pieces encode_pieces(std::span<const Entry> entries, std::size_t part_bytes) {
  Pieces made;
  for (const Entry& entry : entries) {
    const std::vector<std::byte> head = head_of(entry.value);
    std::span<const std::byte> rest(entry.value.bytes(), entry.value.size_bytes());
    do {
      const std::size_t size = std::min(part_bytes, rest.size());
      made.heads.push_back(part_head(entry.name, head, size));
      made.pieces.emplace_back(made.heads.back());
      made.pieces.push_back(rest.first(size));
      rest = rest.subspan(size);
    } while (!rest.empty());
  }
  return made;
}

std::vector<std::byte> encode(std::span<const Entry> entries, std::size_t part_bytes) {
  const Pieces made = encode_pieces(entries, part_bytes);
  std::vector<std::byte> bytes;
  for (const auto piece : made.pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

Result<std::vector<Entry>> decode(std::span<const std::byte> file, const std::string& path) {
  Reader reader(file, 0, path);
  std::vector<Collected> collected;
  while (!reader.at_end()) {
    const std::size_t begin = reader.offset();
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
          name = block.text();
        } else {
          MUSTER_TRY(part, read_tensor(block));
        }
      } else {
        MUSTER_TRY_VOID(value.skip(inner.second));
      }
    }
    if (name.empty()) return reader.bad("an entry has no name", begin);
    if (!part || part->type == "str") continue;
    if (!collected.empty() && collected.back().name == name)
      collected.back().parts.push_back(*std::move(part));
    else
      collected.push_back({std::move(name), {*std::move(part)}});
  }
  std::vector<Entry> entries;
  for (const Collected& one : collected) {
    MUSTER_TRY(Entry entry, join(one, reader));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace muster::checkpoint
