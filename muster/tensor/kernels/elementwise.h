// Moving and converting, element by element. T is float or double unless said otherwise; outputs may be
// inputs.
#pragma once

#include <cstdint>

#include "muster/base/base.h"

namespace muster::kernels {

// out[r][c] = x[r][c] + bias[c]
template <class T>
void bias_add(const T* x, const T* bias, T* out, std::int64_t rows, std::int64_t columns);
// Between any two dtypes. From floating to whole numbers rounds towards zero; what int32 (int64 for uint32
// and 64 bits) cannot hold, and NaN, becomes its least number, and narrower dtypes take the low bits: as C++
// on x86, and so numpy and MindSpore. To floating ones of 16 bits it rounds to the nearest (of a double: of
// the float nearest to it).
void cast(const void* x, DType from, void* out, DType to, std::int64_t count, int threads = 1);

}  // namespace muster::kernels
