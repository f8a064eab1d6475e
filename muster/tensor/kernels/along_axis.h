// Kernels along one axis: the greatest elements, and running sums.
#pragma once

#include <cstdint>

namespace muster::kernels {

// The first k of each row in order, the greatest first (or the smallest with `largest` false); of equal ones
// that with the smaller index first. NaN counts as greatest. T is any dtype but bool.
struct TopkSize {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t k = 0;
  bool largest = true;
};
template <class T>
void topk(const TopkSize& size, const T* x, T* values, std::int32_t* indices);

// x is (outer, size, inner): out[o, i, n] = the sum of x[o, j, n] for j <= i; j < i when exclusive, and from
// the other end when reverse. T is float, double, int32 or int64; out is not x.
struct CumsumSize {
  std::int64_t outer = 1;
  std::int64_t size = 0;
  std::int64_t inner = 1;
  bool exclusive = false;
  bool reverse = false;
};
template <class T>
void cumsum(const CumsumSize& size, const T* x, T* out);

}  // namespace muster::kernels
