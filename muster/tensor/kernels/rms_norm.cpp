#include "muster/tensor/kernels/rms_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "muster/tensor/kernels/row_sums.h"
#include "muster/tensor/kernels/types.h"
#include "muster/tensor/kernels/vectorised.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

// What elements of E are computed in, gamma and statistics among them.
template <class E>
using Wide = Computed<E>;

template <class E>
MUSTER_LOOP inline void normalize_row(std::int64_t columns, double epsilon, const E* x, const Wide<E>* gamma,
                                      E* y, Wide<E>& rstd) {
  using T = Wide<E>;
  const double squares = sum_of(columns, [=](std::int64_t c) MUSTER_LOOP {
    const auto each = static_cast<double>(static_cast<T>(x[c]));
    return each * each;
  });
  const T scale = static_cast<T>(1 / std::sqrt(squares / static_cast<double>(columns) + epsilon));
  rstd = scale;
  for (std::int64_t c = 0; c < columns; ++c) y[c] = static_cast<E>(static_cast<T>(x[c]) * scale * gamma[c]);
}

// dx = rstd (g - n mean(g n)) with g = dy gamma and n = x rstd.
template <class E>
MUSTER_LOOP inline void grad_row(std::int64_t columns, const E* dy, const E* x, const Wide<E>* gamma,
                                 Wide<E> rstd, E* dx) {
  using T = Wide<E>;
  const double along = sum_of(columns, [=](std::int64_t c) MUSTER_LOOP {
    return static_cast<double>(static_cast<T>(dy[c]) * gamma[c]) * static_cast<double>(static_cast<T>(x[c]));
  });
  const T slope = static_cast<T>(along / static_cast<double>(columns)) * rstd * rstd;
  for (std::int64_t c = 0; c < columns; ++c)
    dx[c] = static_cast<E>(rstd * (static_cast<T>(dy[c]) * gamma[c] - static_cast<T>(x[c]) * slope));
}

// Columns [first, first + width) of dgamma, row after row.
template <class E>
MUSTER_LOOP inline void grad_columns(const RmsNormSize& size, const RmsNormGradArguments& arguments,
                                     std::int64_t first, std::int64_t width) {
  using T = Wide<E>;
  std::array<double, columns_at_once> sums{};
  for (std::int64_t r = 0; r < size.rows; ++r) {
    const E* dy = static_cast<const E*>(arguments.dy) + r * size.columns + first;
    const E* x = static_cast<const E*>(arguments.x) + r * size.columns + first;
    const T rstd = static_cast<const T*>(arguments.rstd)[r];
    for (std::int64_t c = 0; c < width; ++c)
      sums[static_cast<std::size_t>(c)] +=
          static_cast<double>(static_cast<T>(dy[c]) * (static_cast<T>(x[c]) * rstd));
  }
  for (std::int64_t c = 0; c < width; ++c)
    static_cast<T*>(arguments.dgamma)[first + c] = static_cast<T>(sums[static_cast<std::size_t>(c)]);
}

}  // namespace

void rms_norm(const RmsNormSize& size, DType dtype, const RmsNormArguments& arguments, int threads) {
  with_floating_element(dtype, [&](auto zero) {
    using E = decltype(zero);
    const auto rows = [&](std::int64_t begin, std::int64_t end) MUSTER_LOOP {
      for (std::int64_t r = begin; r < end; ++r)
        normalize_row(size.columns, arguments.epsilon, static_cast<const E*>(arguments.x) + r * size.columns,
                      static_cast<const Wide<E>*>(arguments.gamma),
                      static_cast<E*>(arguments.y) + r * size.columns,
                      static_cast<Wide<E>*>(arguments.rstd)[r]);
    };
    parallel_for(size.rows, rows_grain(size.columns), threads,
                 [&](std::int64_t begin, std::int64_t end) { vectorised(begin, end, rows); });
  });
}

void rms_norm_grad(const RmsNormSize& size, DType dtype, const RmsNormGradArguments& arguments, int threads) {
  with_floating_element(dtype, [&](auto zero) {
    using E = decltype(zero);
    const auto rows = [&](std::int64_t begin, std::int64_t end) MUSTER_LOOP {
      for (std::int64_t r = begin; r < end; ++r)
        grad_row(size.columns, static_cast<const E*>(arguments.dy) + r * size.columns,
                 static_cast<const E*>(arguments.x) + r * size.columns,
                 static_cast<const Wide<E>*>(arguments.gamma), static_cast<const Wide<E>*>(arguments.rstd)[r],
                 static_cast<E*>(arguments.dx) + r * size.columns);
    };
    const auto columns = [&](std::int64_t first, std::int64_t width)
                             MUSTER_LOOP { grad_columns<E>(size, arguments, first, width); };
    rows_then_columns(size.rows, size.columns, threads, rows, columns);
  });
}

}  // namespace muster::kernels
