// Private to kernels: sums along rows, for what normalizes them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "muster/tensor/kernels/vectorised.h"

namespace muster::kernels {

// Rows of so many columns that one thread takes at least.
inline std::int64_t rows_grain(std::int64_t columns) {
  return std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, columns));
}

// Columns whose sums over all rows are made together, and those that one thread takes at least.
inline constexpr std::int64_t columns_at_once = 128, columns_grain = 16;

// Of term(0) to term(count - 1): sixteen sums side by side, whatever the instructions, so that none waits for
// the one before it.
template <class Term>
MUSTER_LOOP inline double sum_of(std::int64_t count, const Term& term) {
  constexpr std::int64_t chains = 16;
  double sums[chains] = {};
  std::int64_t i = 0;
  for (; i + chains <= count; i += chains)
    for (std::int64_t k = 0; k < chains; ++k) sums[k] += term(i + k);
  for (; i < count; ++i) sums[0] += term(i);
  return std::accumulate(sums, sums + chains, 0.0);
}

}  // namespace muster::kernels
