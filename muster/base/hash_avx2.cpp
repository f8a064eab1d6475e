// XXH3 with AVX2, compiled beside the library's own, which Debian builds for any processor of the kind: the
// same value in a third of the time. Nothing else may be included here: what is inline elsewhere, too, must
// not be compiled for AVX2.
#if defined(__x86_64__)
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>

namespace muster {

std::uint64_t hash_bytes_avx2(const void* data, std::size_t size_bytes, std::uint64_t seed);

std::uint64_t hash_bytes_avx2(const void* data, std::size_t size_bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, size_bytes, seed);
}

}  // namespace muster
#endif
