// XXH3, 64 bits: fast and well spread; it finds damage and differences, it is no defence against a forger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace muster {

std::uint64_t hash_bytes(const void* data, std::size_t size_bytes, std::uint64_t seed = 0);
inline std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}

// The hash of bytes that come in pieces: that of all of them at once, with the seed 0.
class Hasher {
 public:
  Hasher();
  void add(std::span<const std::byte> bytes);
  std::uint64_t hash() const;

 private:
  struct Free {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, Free> state_;
};

}  // namespace muster
