// XXH3, 64 bits: fast and well spread; it finds damage and differences, it is no defence against a forger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster {

std::uint64_t hash_bytes(const void* data, std::size_t size_bytes, std::uint64_t seed = 0);
inline std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}

}  // namespace muster
