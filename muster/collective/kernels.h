// The arithmetic and the copies of collective operations.
#pragma once

#include <cstddef>
#include <span>

#include "muster/base/base.h"
#include "muster/collective/collective.h"

namespace muster::collective {

inline constexpr std::size_t line_size_bytes = 64;  // of the caches

// Streaming stores go past the caches to memory. Another core reads such lines much faster than lines that
// are dirty in this core's cache; for data that fits into the cache and is read here soon they cost more.
enum class Stores { cached, streaming };

void copy(std::byte* to, const std::byte* from, std::size_t size_bytes, Stores stores);

struct Destination {
  std::byte* bytes = nullptr;
  Stores stores = Stores::cached;
};

// out[i] = sources[0][i] op sources[1][i] op …, always in this order, then the division of a mean, for each
// destination; floats of 16 bits in float32, rounded once. Destinations may be sources. What can_reduce()
// refuses is a programming error.
struct Combination {
  std::span<const std::byte* const> sources;
  std::span<const Destination> destinations;
  std::size_t count;
  DType dtype;
  Reduction reduction;
};
void combine(const Combination& work);

}  // namespace muster::collective
