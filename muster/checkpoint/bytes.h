// Numbers as bytes, little-endian. Private to this module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace muster::checkpoint {

inline constexpr std::size_t number_bytes = 8;

inline void put(std::vector<std::byte>& out, std::uint64_t number) {
  for (std::size_t i = 0; i < number_bytes; ++i) out.push_back(static_cast<std::byte>(number >> 8 * i));
}

inline void put(std::vector<std::byte>& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// The number at `offset`; all of it is there.
inline std::uint64_t get(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < number_bytes; ++i)
    number |= std::to_integer<std::uint64_t>(bytes[offset + i]) << 8 * i;
  return number;
}

}  // namespace muster::checkpoint
