#include "muster/tensor/kernels/rotary.h"

#include <algorithm>

#include "muster/tensor/kernels/row_sums.h"
#include "muster/tensor/kernels/types.h"
#include "muster/tensor/kernels/vectorised.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

// Rows of x in order, each with its row of the tables.
class Places {
 public:
  Places(const RotarySize& size, std::int64_t row) : size_(size), index_(size.sizes.size()) {
    for (std::size_t axis = index_.size(); axis-- > 0; row /= size.sizes[axis]) {
      index_[axis] = row % size.sizes[axis];
      at_ += index_[axis] * size.table_steps[axis];
    }
  }
  std::int64_t table_row() const { return at_; }
  void next() {
    for (std::size_t axis = index_.size(); axis-- > 0;) {
      at_ += size_.table_steps[axis];
      if (++index_[axis] < size_.sizes[axis]) return;
      at_ -= index_[axis] * size_.table_steps[axis];
      index_[axis] = 0;
    }
  }

 private:
  const RotarySize& size_;
  std::vector<std::int64_t> index_;
  std::int64_t at_ = 0;
};

template <bool adjoint, class E, class T>
MUSTER_LOOP inline void turn_row(std::int64_t half, const E* x, const T* cos, const T* sin, E* y) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < half; ++i) {
    const T a = x[i], b = x[i + half];
    if constexpr (adjoint) {
      y[i] = static_cast<E>(a * cos[i] + b * sin[i + half]);
      y[i + half] = static_cast<E>(b * cos[i + half] - a * sin[i]);
    } else {
      y[i] = static_cast<E>(a * cos[i] - b * sin[i]);
      y[i + half] = static_cast<E>(b * cos[i + half] + a * sin[i + half]);
    }
  }
}

template <bool adjoint, class E, class T>
void turn(const RotarySize& size, const E* x, const T* cos, const T* sin, E* y, int threads) {
  const auto rows = [=, &size](std::int64_t begin, std::int64_t end) MUSTER_LOOP {
    Places places(size, begin);
    for (std::int64_t row = begin; row < end; ++row, places.next()) {
      const std::int64_t at = row * size.depth, table = places.table_row() * size.depth;
      turn_row<adjoint>(size.depth / 2, x + at, cos + table, sin + table, y + at);
    }
  };
  parallel_for(size.rows, rows_grain(size.depth), threads,
               [&](std::int64_t begin, std::int64_t end) { vectorised(begin, end, rows); });
}

}  // namespace

void rotary(const RotarySize& size, DType dtype, const void* x, const void* cos, const void* sin, void* y,
            int threads) {
  with_floating_element(dtype, [&](auto zero) {
    using E = decltype(zero);
    using T = Computed<E>;
    const auto run = size.adjoint ? turn<true, E, T> : turn<false, E, T>;
    run(size, static_cast<const E*>(x), static_cast<const T*>(cos), static_cast<const T*>(sin),
        static_cast<E*>(y), threads);
  });
}

}  // namespace muster::kernels
