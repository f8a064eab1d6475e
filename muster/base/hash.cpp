#include "muster/base/hash.h"

#include <xxhash.h>

namespace muster {

std::uint64_t hash_bytes(const void* data, std::size_t size_bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, size_bytes, seed);
}

void Hasher::Free::operator()(void* state) const { XXH3_freeState(static_cast<XXH3_state_t*>(state)); }

Hasher::Hasher() : state_(XXH3_createState()) { XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_.get())); }

void Hasher::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes.data(), bytes.size());
}

std::uint64_t Hasher::hash() const { return XXH3_64bits_digest(static_cast<XXH3_state_t*>(state_.get())); }

}  // namespace muster
