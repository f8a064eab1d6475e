// Moving and converting, element by element. T is float or double unless said otherwise; outputs may be
// inputs.
#pragma once

#include <cstdint>

#include "muster/base/base.h"

namespace muster::kernels {

// out[r][c] = x[r][c] + bias[c]
template <class T>
void bias_add(const T* x, const T* bias, T* out, std::int64_t rows, std::int64_t columns);
// Any T.
template <class T>
void fill(T value, T* out, std::int64_t count);
// Between any two dtypes, as C++ converts; from floating to integer rounds towards zero and saturates, to
// bfloat16 to the nearest (of a double: of the float nearest to it).
void cast(const void* x, DType from, void* out, DType to, std::int64_t count, int threads = 1);

}  // namespace muster::kernels
