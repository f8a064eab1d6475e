#include "muster/tensor/kernels/reduce.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace muster::kernels {

template <class T>
void sum_all(const T* x, T* out, std::int64_t count, double scale) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
  out[0] = static_cast<T>(sum * scale);
}

template <class T>
void sum_rows(const T* x, T* out, std::int64_t rows, std::int64_t columns) {
  std::fill_n(out, columns, T{0});
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) out[c] += x[r * columns + c];
}

template <class T>
void sum_to(const T* x, const Shape& x_shape, T* out, const Shape& out_shape) {
  std::fill_n(out, out_shape.elements(), T{0});
  const std::size_t rank = x_shape.rank();
  std::vector<std::int64_t> strides(rank, 0);
  std::int64_t step = 1;
  for (std::size_t back = 1; back <= out_shape.rank(); ++back) {
    const std::int64_t size = out_shape[out_shape.rank() - back];
    if (size != 1) strides[rank - back] = step;
    step *= size;
  }
  std::vector<std::int64_t> index(rank, 0);
  const std::int64_t count = x_shape.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) at += index[axis] * strides[axis];
    out[at] += x[i];
    for (std::size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < x_shape[axis]) break;
      index[axis] = 0;
    }
  }
}

template <class T>
void argmax(const T* x, std::int32_t* out, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * columns;
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < columns && !std::isnan(row[best]); ++c)
      if (row[c] > row[best] || std::isnan(row[c])) best = c;
    out[r] = static_cast<std::int32_t>(best);
  }
}

#define MUSTER_INSTANTIATE(T)                                       \
  template void sum_all(const T*, T*, std::int64_t, double);        \
  template void sum_rows(const T*, T*, std::int64_t, std::int64_t); \
  template void sum_to(const T*, const Shape&, T*, const Shape&);   \
  template void argmax(const T*, std::int32_t*, std::int64_t, std::int64_t);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)

}  // namespace muster::kernels
