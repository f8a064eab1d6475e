// Private to kernels: sums along rows, for what normalizes them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "muster/tensor/kernels/vectorised.h"
#include "muster/tensor/parallel.h"

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

// of_rows(begin, end) for all rows, then of_columns(first, width) for all columns, on several threads.
template <class OfRows, class OfColumns>
void rows_then_columns(std::int64_t rows, std::int64_t columns, int threads, const OfRows& of_rows,
                       const OfColumns& of_columns) {
  const auto blocks = [&](std::int64_t begin, std::int64_t end) MUSTER_LOOP {
    for (std::int64_t first = begin; first < end; first += columns_at_once)
      of_columns(first, std::min(columns_at_once, end - first));
  };
  parallel_for(rows, rows_grain(columns), threads,
               [&](std::int64_t begin, std::int64_t end) { vectorised(begin, end, of_rows); });
  parallel_for(columns, columns_grain, threads,
               [&](std::int64_t begin, std::int64_t end) { vectorised(begin, end, blocks); });
}

}  // namespace muster::kernels
