#include "muster/tensor/kernels/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace muster::kernels {
namespace {

template <class T>
T apply(Binary kind, T a, T b) {
  switch (kind) {
    case Binary::add:
      return a + b;
    case Binary::sub:
      return a - b;
    case Binary::mul:
      return a * b;
    case Binary::div:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;  // numpy's answer; C++ has none
    if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
  }
  return a / b;
}

// Steps through `shape` for each element of `out_shape`: 0 along axes that are broadcast.
std::vector<std::int64_t> strides_in(const Shape& shape, const Shape& out_shape) {
  std::vector<std::int64_t> strides(out_shape.rank(), 0);
  std::int64_t step = 1;
  for (std::size_t back = 1; back <= shape.rank(); ++back) {
    const std::int64_t size = shape[shape.rank() - back];
    if (size != 1) strides[out_shape.rank() - back] = step;
    step *= size;
  }
  return strides;
}

template <class From, class To>
To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return 0;
    const auto low = static_cast<From>(std::numeric_limits<To>::min());
    const auto high = static_cast<From>(std::numeric_limits<To>::max());
    if (value <= low) return std::numeric_limits<To>::min();
    if (value >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// Calls `use` with a value of the C++ type of `dtype`.
template <class Use>
void with_type(DType dtype, Use&& use) {
  switch (dtype) {
    case DType::float32:
      return use(float{});
    case DType::float64:
      return use(double{});
    case DType::int32:
      return use(std::int32_t{});
    case DType::int64:
      return use(std::int64_t{});
    case DType::uint8:
      return use(std::uint8_t{});
    case DType::uint32:
      return use(std::uint32_t{});
    case DType::int8:
      return use(std::int8_t{});
    case DType::bool_:
      return use(bool{});
  }
}

}  // namespace

template <class T>
void binary(Binary kind, const T* a, const T* b, T* out, std::int64_t count) {
  switch (kind) {
    case Binary::add:
      for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
      return;
    case Binary::sub:
      for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] - b[i];
      return;
    case Binary::mul:
      for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] * b[i];
      return;
    case Binary::div:
      for (std::int64_t i = 0; i < count; ++i) out[i] = apply(Binary::div, a[i], b[i]);
      return;
  }
}

template <class T>
void binary_broadcast(Binary kind, const T* a, const Shape& a_shape, const T* b, const Shape& b_shape, T* out,
                      const Shape& out_shape) {
  const auto a_strides = strides_in(a_shape, out_shape);
  const auto b_strides = strides_in(b_shape, out_shape);
  const std::size_t rank = out_shape.rank();
  std::vector<std::int64_t> index(rank, 0);
  const std::int64_t count = out_shape.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t a_at = 0;
    std::int64_t b_at = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      a_at += index[axis] * a_strides[axis];
      b_at += index[axis] * b_strides[axis];
    }
    out[i] = apply(kind, a[a_at], b[b_at]);
    for (std::size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < out_shape[axis]) break;
      index[axis] = 0;
    }
  }
}

template <class T>
void relu(const T* x, T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? T{0} : x[i];  // NaN stays NaN
}

template <class T>
void relu_grad(const T* dy, const T* y, T* dx, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = y[i] > 0 ? dy[i] : T{0};
}

template <class T>
void tanh(const T* x, T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = std::tanh(x[i]);
}

template <class T>
void tanh_grad(const T* dy, const T* y, T* dx, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

template <class T>
void bias_add(const T* x, const T* bias, T* out, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) out[r * columns + c] = x[r * columns + c] + bias[c];
}

template <class T>
void fill(T value, T* out, std::int64_t count) {
  std::fill_n(out, count, value);
}

template <class T>
void equal(const T* a, const T* b, bool* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] == b[i];
}

void cast(const void* x, DType from, void* out, DType to, std::int64_t count) {
  with_type(from, [&](auto from_value) {
    with_type(to, [&](auto to_value) {
      using From = decltype(from_value);
      using To = decltype(to_value);
      const auto* source = static_cast<const From*>(x);
      auto* target = static_cast<To*>(out);
      for (std::int64_t i = 0; i < count; ++i) target[i] = convert<From, To>(source[i]);
    });
  });
}

#define MUSTER_INSTANTIATE_BINARY(T)                                  \
  template void binary(Binary, const T*, const T*, T*, std::int64_t); \
  template void binary_broadcast(Binary, const T*, const Shape&, const T*, const Shape&, T*, const Shape&);
MUSTER_INSTANTIATE_BINARY(float)
MUSTER_INSTANTIATE_BINARY(double)
MUSTER_INSTANTIATE_BINARY(std::int32_t)
MUSTER_INSTANTIATE_BINARY(std::int64_t)

#define MUSTER_INSTANTIATE_FLOATING(T)                           \
  template void relu(const T*, T*, std::int64_t);                \
  template void relu_grad(const T*, const T*, T*, std::int64_t); \
  template void tanh(const T*, T*, std::int64_t);                \
  template void tanh_grad(const T*, const T*, T*, std::int64_t); \
  template void bias_add(const T*, const T*, T*, std::int64_t, std::int64_t);
MUSTER_INSTANTIATE_FLOATING(float)
MUSTER_INSTANTIATE_FLOATING(double)

#define MUSTER_INSTANTIATE_ANY(T)          \
  template void fill(T, T*, std::int64_t); \
  template void equal(const T*, const T*, bool*, std::int64_t);
MUSTER_INSTANTIATE_ANY(float)
MUSTER_INSTANTIATE_ANY(double)
MUSTER_INSTANTIATE_ANY(std::int32_t)
MUSTER_INSTANTIATE_ANY(std::int64_t)
MUSTER_INSTANTIATE_ANY(std::uint8_t)
MUSTER_INSTANTIATE_ANY(std::uint32_t)
MUSTER_INSTANTIATE_ANY(std::int8_t)
MUSTER_INSTANTIATE_ANY(bool)

}  // namespace muster::kernels
