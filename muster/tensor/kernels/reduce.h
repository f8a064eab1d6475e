// Sums and maxima. T is float or double; sums run in double in the order of memory, so results repeat.
#pragma once

#include <cstdint>

#include "muster/base/base.h"

namespace muster::kernels {

// out[0] = scale * the sum of all.
template <class T>
void sum_all(const T* x, T* out, std::int64_t count, double scale);
// out[c] = the sum over rows of x[r][c].
template <class T>
void sum_rows(const T* x, T* out, std::int64_t rows, std::int64_t columns);
// The reverse of broadcasting: out has `out_shape`, which broadcasts to `x_shape`.
template <class T>
void sum_to(const T* x, const Shape& x_shape, T* out, const Shape& out_shape);
// out[r] = the first index of the greatest of x[r][...]; NaN counts as greatest.
template <class T>
void argmax(const T* x, std::int32_t* out, std::int64_t rows, std::int64_t columns);

}  // namespace muster::kernels
