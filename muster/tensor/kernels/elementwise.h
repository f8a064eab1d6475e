// Element by element. T is float or double unless said otherwise; outputs may be inputs.
#pragma once

#include <cstdint>

#include "muster/base/base.h"

namespace muster::kernels {

enum class Binary { add, sub, mul, div };

// Equal shapes. T also int32 and int64.
template <class T>
void binary(Binary kind, const T* a, const T* b, T* out, std::int64_t count);

// numpy's broadcasting: shapes are aligned at the last axis, sizes are equal or 1. T also int32 and int64.
template <class T>
void binary_broadcast(Binary kind, const T* a, const Shape& a_shape, const T* b, const Shape& b_shape, T* out,
                      const Shape& out_shape);

template <class T>
void relu(const T* x, T* y, std::int64_t count);
// dy where y > 0, else 0.
template <class T>
void relu_grad(const T* dy, const T* y, T* dx, std::int64_t count);
template <class T>
void tanh(const T* x, T* y, std::int64_t count);
// dy (1 - y^2)
template <class T>
void tanh_grad(const T* dy, const T* y, T* dx, std::int64_t count);
// out[r][c] = x[r][c] + bias[c]
template <class T>
void bias_add(const T* x, const T* bias, T* out, std::int64_t rows, std::int64_t columns);
// Any T.
template <class T>
void fill(T value, T* out, std::int64_t count);
template <class T>
void equal(const T* a, const T* b, bool* out, std::int64_t count);
// Between any two dtypes, as C++ converts; from floating to integer rounds towards zero and saturates.
void cast(const void* x, DType from, void* out, DType to, std::int64_t count);

}  // namespace muster::kernels
