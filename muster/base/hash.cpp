#include "muster/base/hash.h"

#include <xxhash.h>

namespace muster {

#if defined(__x86_64__)
std::uint64_t hash_bytes_avx2(const void* data, std::size_t size_bytes, std::uint64_t seed);  // hash_avx2.cpp

namespace {

constexpr std::size_t wide_from_bytes = 512;  // below, both take as long

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

}  // namespace
#endif

std::uint64_t hash_bytes(const void* data, std::size_t size_bytes, std::uint64_t seed) {
#if defined(__x86_64__)
  if (size_bytes >= wide_from_bytes && has_avx2()) return hash_bytes_avx2(data, size_bytes, seed);
#endif
  return XXH3_64bits_withSeed(data, size_bytes, seed);
}

void Hasher::Free::operator()(void* state) const { XXH3_freeState(static_cast<XXH3_state_t*>(state)); }

Hasher::Hasher() : state_(XXH3_createState()) { XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_.get())); }

void Hasher::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes.data(), bytes.size());
}

std::uint64_t Hasher::hash() const { return XXH3_64bits_digest(static_cast<XXH3_state_t*>(state_.get())); }

}  // namespace muster
