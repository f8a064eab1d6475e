// Second public header of `base`, for those who write files of others (tools/check_layout.py): protocol
// buffers, as far as .ckpt, ONNX and TensorBoard need them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::protobuf {

enum WireType : std::uint64_t { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };

// How many bytes a number takes.
constexpr std::size_t varint_bytes(std::uint64_t value) {
  std::size_t count = 1;
  for (; value >= 0x80; value >>= 7) ++count;
  return count;
}

class Writer {
 public:
  Writer() { bytes_.reserve(64); }  // most messages are small, and are made byte by byte
  void number(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<std::byte>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<std::byte>(value));
  }
  void tag(std::uint64_t field, WireType type) { number(field << 3 | type); }
  void integer(std::uint64_t field, std::int64_t value) {
    tag(field, varint);
    number(static_cast<std::uint64_t>(value));
  }
  void real(std::uint64_t field, float value) {
    tag(field, fixed32);
    little_endian(std::bit_cast<std::uint32_t>(value));
  }
  void real64(std::uint64_t field, double value) {
    tag(field, fixed64);
    little_endian(std::bit_cast<std::uint64_t>(value));
  }
  void reals64(std::uint64_t field, std::span<const double> values) {  // packed
    begin_block(field, values.size() * sizeof(double));
    for (const double value : values) little_endian(std::bit_cast<std::uint64_t>(value));
  }
  void block(std::uint64_t field, std::span<const std::byte> content) {
    tag(field, delimited);
    number(content.size());
    append(content);
  }
  void text(std::uint64_t field, std::string_view content) {
    block(field, std::as_bytes(std::span(content.data(), content.size())));
  }
  // The begin of a block whose content of `size` bytes is appended by the caller.
  void begin_block(std::uint64_t field, std::size_t size) {
    tag(field, delimited);
    number(size);
  }
  void append(std::span<const std::byte> more) { bytes_.insert(bytes_.end(), more.begin(), more.end()); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  template <class Bits>
  void little_endian(Bits bits) {
    for (std::size_t i = 0; i < sizeof bits; ++i) bytes_.push_back(static_cast<std::byte>(bits >> 8 * i));
  }

  std::vector<std::byte> bytes_;
};

}  // namespace muster::protobuf
