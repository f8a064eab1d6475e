// Protocol buffers, as far as our formats need them: .ckpt and ONNX.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::checkpoint::protobuf {

enum WireType : std::uint64_t { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };

// How many bytes a number takes.
constexpr std::size_t varint_bytes(std::uint64_t value) {
  std::size_t count = 1;
  for (; value >= 0x80; value >>= 7) ++count;
  return count;
}

class Writer {
 public:
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
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_.push_back(static_cast<std::byte>(bits >> shift));
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
  std::vector<std::byte> bytes_;
};

}  // namespace muster::checkpoint::protobuf
