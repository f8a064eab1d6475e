// Helpers that the fuzz targets share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

// The one function of a target: takes any bytes, returns 0, and ends the process where something is wrong.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace muster::fuzz {

inline std::span<const std::byte> bytes_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}
inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}
inline void expect(bool holds) {
  if (!holds) std::abort();
}

// Gives the input out piece by piece: small numbers first, then the rest.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(bytes_of(data, size)) {}
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto first = static_cast<std::uint8_t>(rest_.front());
    rest_ = rest_.subspan(1);
    return first;
  }
  std::span<const std::byte> take(std::size_t size_bytes) {
    const auto piece = rest_.first(size_bytes < rest_.size() ? size_bytes : rest_.size());
    rest_ = rest_.subspan(piece.size());
    return piece;
  }
  std::span<const std::byte> rest() const { return rest_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(rest_.data()), rest_.size()}; }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace muster::fuzz
