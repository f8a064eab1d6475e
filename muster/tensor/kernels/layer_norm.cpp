#include "muster/tensor/kernels/layer_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "muster/tensor/kernels/row_sums.h"
#include "muster/tensor/kernels/types.h"
#include "muster/tensor/kernels/vectorised.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

// What elements of E are computed in, gamma, beta and statistics among them.
template <class E>
using Wide = Computed<E>;

template <class E, class T = Wide<E>>
MUSTER_LOOP inline void normalize_row(const LayerNormSize& size, const E* x, const T* gamma, const T* beta,
                                      E* y, T& mean, T& rstd) {
  const auto count = static_cast<double>(size.columns);
  const auto at = [=](std::int64_t c) MUSTER_LOOP { return static_cast<double>(static_cast<T>(x[c])); };
  const double center = sum_of(size.columns, at) / count;
  const double squares = sum_of(size.columns, [=](std::int64_t c) MUSTER_LOOP {
    const double away = at(c) - center;
    return away * away;
  });
  mean = static_cast<T>(center);
  rstd = static_cast<T>(1 / std::sqrt(squares / count + size.eps));
  for (std::int64_t c = 0; c < size.columns; ++c)
    y[c] = static_cast<E>((static_cast<T>(x[c]) - mean) * rstd * gamma[c] + beta[c]);
}

// dx = rstd (g - mean(g) - n mean(g n)) with g = dy gamma and n = (x - mean) rstd.
template <class E, class T = Wide<E>>
MUSTER_LOOP inline void grad_row(const LayerNormSize& size, const E* dy, const E* x, const T* gamma, T mean,
                                 T rstd, E* dx) {
  const auto g = [=](std::int64_t c) MUSTER_LOOP {
    return static_cast<double>(static_cast<T>(dy[c])) * static_cast<double>(gamma[c]);
  };
  const double sum = sum_of(size.columns, g);
  const double sum_along = sum_of(size.columns, [=](std::int64_t c) MUSTER_LOOP {
    return g(c) * static_cast<double>((static_cast<T>(x[c]) - mean) * rstd);
  });
  const auto count = static_cast<double>(size.columns);
  const T shift = static_cast<T>(sum / count);
  const T slope = static_cast<T>(sum_along / count);
  for (std::int64_t c = 0; c < size.columns; ++c)
    dx[c] = static_cast<E>(
        rstd * (static_cast<T>(dy[c]) * gamma[c] - shift - (static_cast<T>(x[c]) - mean) * rstd * slope));
}

// Columns [first, first + width) of dgamma and dbeta, row after row.
template <class E, class T = Wide<E>>
MUSTER_LOOP inline void grad_columns(const LayerNormSize& size, const LayerNormGradArguments& arguments,
                                     std::int64_t first, std::int64_t width) {
  std::array<double, columns_at_once> dgamma{};
  std::array<double, columns_at_once> dbeta{};
  for (std::int64_t r = 0; r < size.rows; ++r) {
    const E* dy = static_cast<const E*>(arguments.dy) + r * size.columns + first;
    const E* x = static_cast<const E*>(arguments.x) + r * size.columns + first;
    const T mean = static_cast<const T*>(arguments.mean)[r];
    const T rstd = static_cast<const T*>(arguments.rstd)[r];
    for (std::int64_t c = 0; c < width; ++c) {
      const T each = static_cast<T>(dy[c]);
      dgamma[static_cast<std::size_t>(c)] +=
          static_cast<double>(each * ((static_cast<T>(x[c]) - mean) * rstd));
      dbeta[static_cast<std::size_t>(c)] += static_cast<double>(each);
    }
  }
  for (std::int64_t c = 0; c < width; ++c) {
    static_cast<T*>(arguments.dgamma)[first + c] = static_cast<T>(dgamma[static_cast<std::size_t>(c)]);
    static_cast<T*>(arguments.dbeta)[first + c] = static_cast<T>(dbeta[static_cast<std::size_t>(c)]);
  }
}

}  // namespace

void layer_norm(const LayerNormSize& size, DType dtype, const LayerNormArguments& arguments, int threads) {
  with_floating_element(dtype, [&](auto zero) {
    using E = decltype(zero);
    using T = Wide<E>;
    const auto rows = [&](std::int64_t begin, std::int64_t end) MUSTER_LOOP {
      for (std::int64_t r = begin; r < end; ++r)
        normalize_row<E>(size, static_cast<const E*>(arguments.x) + r * size.columns,
                         static_cast<const T*>(arguments.gamma), static_cast<const T*>(arguments.beta),
                         static_cast<E*>(arguments.y) + r * size.columns, static_cast<T*>(arguments.mean)[r],
                         static_cast<T*>(arguments.rstd)[r]);
    };
    parallel_for(size.rows, rows_grain(size.columns), threads,
                 [&](std::int64_t begin, std::int64_t end) { vectorised(begin, end, rows); });
  });
}

void layer_norm_grad(const LayerNormSize& size, DType dtype, const LayerNormGradArguments& arguments,
                     int threads) {
  with_floating_element(dtype, [&](auto zero) {
    using E = decltype(zero);
    using T = Wide<E>;
    const auto rows = [&](std::int64_t begin, std::int64_t end) MUSTER_LOOP {
      for (std::int64_t r = begin; r < end; ++r)
        grad_row<E>(size, static_cast<const E*>(arguments.dy) + r * size.columns,
                    static_cast<const E*>(arguments.x) + r * size.columns,
                    static_cast<const T*>(arguments.gamma), static_cast<const T*>(arguments.mean)[r],
                    static_cast<const T*>(arguments.rstd)[r],
                    static_cast<E*>(arguments.dx) + r * size.columns);
    };
    const auto columns = [&](std::int64_t first, std::int64_t width)
                             MUSTER_LOOP { grad_columns<E>(size, arguments, first, width); };
    rows_then_columns(size.rows, size.columns, threads, rows, columns);
  });
}

}  // namespace muster::kernels
