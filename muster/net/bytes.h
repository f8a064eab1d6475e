// Numbers and texts inside a payload, little endian, lengths first.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::net {

template <std::unsigned_integral T>
void store_little(std::byte* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
}
template <std::unsigned_integral T>
T load_little(const std::byte* from) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<std::uint64_t>(from[i]) << (8 * i);
  return static_cast<T>(value);
}

// Builds a payload field by field.
class ByteWriter {
 public:
  template <std::unsigned_integral T>
  void number(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    store_little(bytes_.data() + at, value);
  }
  // A u32 length, then the characters.
  void text(std::string_view value);

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads a payload in the order it was written. The first failure sticks: later reads give zeros and empty
// texts, and `finish` reports it, so that a whole message is read without a branch at each field.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <std::unsigned_integral T>
  T number() {
    if (!has(sizeof(T))) return T{};
    const T value = load_little<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  std::string text(std::size_t limit);
  // A u32 number of items that follow, each at least `item_size_bytes` long and at most `limit` of them.
  std::uint32_t count(std::size_t limit, std::size_t item_size_bytes);

  bool ok() const { return ok_; }
  // The payload must have been read exactly to its end. `what` names the message in the error.
  Result<> finish(std::string_view what) const;

 private:
  bool has(std::size_t size_bytes) {
    ok_ = ok_ && rest_.size() >= size_bytes;
    return ok_;
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace muster::net
