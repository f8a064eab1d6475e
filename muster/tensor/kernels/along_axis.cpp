#include "muster/tensor/kernels/along_axis.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

namespace muster::kernels {
namespace {

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

// Strictly: NaN is above everything but NaN.
template <class T>
bool above(T a, T b) {
  return is_nan(a) ? !is_nan(b) : a > b;
}

}  // namespace

template <class T>
void topk(const TopkSize& size, const T* x, T* values, std::int32_t* indices) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(size.columns));
  for (std::int64_t r = 0; r < size.rows; ++r) {
    const T* row = x + r * size.columns;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + size.k, order.end(),
                      [&](std::int32_t a, std::int32_t b) {
                        const T first = size.largest ? row[a] : row[b];
                        const T second = size.largest ? row[b] : row[a];
                        return above(first, second) || (!above(second, first) && a < b);
                      });
    for (std::int64_t i = 0; i < size.k; ++i) {
      const std::int32_t index = order[static_cast<std::size_t>(i)];
      values[r * size.k + i] = row[index];
      indices[r * size.k + i] = index;
    }
  }
}

template <class T>
void cumsum(const CumsumSize& size, const T* x, T* out) {
  for (std::int64_t outer = 0; outer < size.outer; ++outer) {
    for (std::int64_t step = 0; step < size.size; ++step) {
      const std::int64_t i = size.reverse ? size.size - 1 - step : step;
      const std::int64_t before = size.reverse ? i + 1 : i - 1;
      T* sum = out + (outer * size.size + i) * size.inner;
      const T* sum_before = out + (outer * size.size + before) * size.inner;
      const T* term = x + (outer * size.size + (size.exclusive ? before : i)) * size.inner;
      for (std::int64_t n = 0; n < size.inner; ++n) {
        const T old = step == 0 ? T{0} : sum_before[n];
        sum[n] = old + (size.exclusive && step == 0 ? T{0} : term[n]);
      }
    }
  }
}

#define MUSTER_INSTANTIATE_TOPK(T) template void topk(const TopkSize&, const T*, T*, std::int32_t*);
MUSTER_INSTANTIATE_TOPK(float)
MUSTER_INSTANTIATE_TOPK(double)
MUSTER_INSTANTIATE_TOPK(std::int32_t)
MUSTER_INSTANTIATE_TOPK(std::int64_t)
MUSTER_INSTANTIATE_TOPK(std::uint8_t)
MUSTER_INSTANTIATE_TOPK(std::uint32_t)
MUSTER_INSTANTIATE_TOPK(std::int8_t)

#define MUSTER_INSTANTIATE_CUMSUM(T) template void cumsum(const CumsumSize&, const T*, T*);
MUSTER_INSTANTIATE_CUMSUM(float)
MUSTER_INSTANTIATE_CUMSUM(double)
MUSTER_INSTANTIATE_CUMSUM(std::int32_t)
MUSTER_INSTANTIATE_CUMSUM(std::int64_t)

}  // namespace muster::kernels
