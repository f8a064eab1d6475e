#include "muster/base/hash.h"

#include <xxhash.h>

namespace muster {

std::uint64_t hash_bytes(const void* data, std::size_t size_bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, size_bytes, seed);
}

}  // namespace muster
