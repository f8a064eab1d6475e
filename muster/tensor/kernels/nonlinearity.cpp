#include "muster/tensor/kernels/nonlinearity.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <type_traits>
#include <vector>

#include "muster/tensor/kernels/bfloat16_loops.h"
#include "muster/tensor/kernels/elementwise.h"
#include "muster/tensor/kernels/elementwise_loops.h"
#include "muster/tensor/kernels/types.h"
#include "muster/tensor/kernels/vector_math.h"

namespace muster::kernels {
namespace {

using Kind = Nonlinearity::Kind;

template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

// Neither overflows for large x nor loses e^x for small ones.
template <class T>
T softplus(T x) {
  return (x > 0 ? x : T{0}) + std::log1p(std::exp(-std::abs(x)));
}

// P(X <= x) for X ~ N(0, 1).
template <class T>
T normal_cdf(T x) {
  return std::erfc(-x / std::numbers::sqrt2_v<T>) / 2;
}

template <class T>
T normal_density(T x) {
  return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
}

// The argument of tanh in GELU's approximation: sqrt(2 / pi) (x + 0.044715 x^3).
template <class T>
struct TanhInside {
  static constexpr T scale = std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T>;
  static constexpr T cubic = static_cast<T>(0.044715);
  static T of(T x) { return scale * (x + cubic * x * x * x); }
  static T derivative(T x) { return scale * (1 + 3 * cubic * x * x); }
};

template <class T>
T gelu_tanh(T x) {
  return x / 2 * (1 + std::tanh(TanhInside<T>::of(x)));
}

template <class T>
T gelu_tanh_derivative(T x) {
  const T t = std::tanh(TanhInside<T>::of(x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * TanhInside<T>::derivative(x);
}

template <class T>
T silu_derivative(T x) {
  const T s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

// Calls use(f) with the function of T that `what` means.
template <class T, class Use>
void with_function(const Nonlinearity& what, const Use& use) {
  const T alpha = static_cast<T>(what.alpha);
  switch (what.kind) {
    case Kind::relu:
      return use([](T x) { return x < 0 ? T{0} : x; });
    case Kind::relu6:
      return use([](T x) { return x < 0 ? T{0} : (x > 6 ? T{6} : x); });
    case Kind::leaky_relu:
      return use([alpha](T x) { return x > 0 ? x : alpha * x; });
    case Kind::elu:
      return use([alpha](T x) { return x > 0 ? x : alpha * std::expm1(x); });
    case Kind::sigmoid:
      return use([](T x) { return sigmoid(x); });
    case Kind::tanh:
      return use([](T x) { return std::tanh(x); });
    case Kind::gelu:
      return use([](T x) { return x * normal_cdf(x); });
    case Kind::gelu_tanh:
      return use([](T x) { return gelu_tanh(x); });
    case Kind::silu:
      return use([](T x) { return x * sigmoid(x); });
    case Kind::softplus:
      return use([](T x) { return softplus(x); });
  }
}

// Calls use(f) with dx = f(dy, x), or f(dy, y).
template <class T, class Use>
void with_derivative(const Nonlinearity& what, const Use& use) {
  const T alpha = static_cast<T>(what.alpha);
  switch (what.kind) {
    case Kind::relu:
      return use([](T dy, T y) { return y > 0 ? dy : T{0}; });
    case Kind::relu6:
      return use([](T dy, T x) { return x > 0 && x <= 6 ? dy : T{0}; });
    case Kind::leaky_relu:
      return use([alpha](T dy, T x) { return x > 0 ? dy : alpha * dy; });
    case Kind::elu:
      return use([alpha](T dy, T x) { return x > 0 ? dy : dy * alpha * std::exp(x); });
    case Kind::sigmoid:
      return use([](T dy, T y) { return dy * y * (1 - y); });
    case Kind::tanh:
      return use([](T dy, T y) { return dy * (1 - y * y); });
    case Kind::gelu:
      return use([](T dy, T x) { return dy * (normal_cdf(x) + x * normal_density(x)); });
    case Kind::gelu_tanh:
      return use([](T dy, T x) { return dy * gelu_tanh_derivative(x); });
    case Kind::silu:
      return use([](T dy, T x) { return dy * silu_derivative(x); });
    case Kind::softplus:
      return use([](T dy, T x) { return dy * sigmoid(x); });
  }
}

// Elements of 16 bits go through the functions of float32, so many at a time that they stay in the cache.
constexpr std::int64_t tile = 2048;

bool has_16_bits(DType dtype) { return dtype == DType::bfloat16 || dtype == DType::float16; }

void widen(DType dtype, const void* x, std::int64_t begin, std::int64_t count, float* to) {
  cast(static_cast<const std::uint16_t*>(x) + begin, dtype, to, DType::float32, count);
}
void round(DType dtype, const float* x, std::int64_t count, void* to, std::int64_t begin) {
  cast(x, DType::float32, static_cast<std::uint16_t*>(to) + begin, dtype, count);
}

// Calls body(begin, count) for all tiles.
template <class Body>
void for_tiles(std::int64_t count, int threads, const Body& body) {
  parallel_for(count, elementwise_grain, threads, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; begin += tile) body(begin, std::min(tile, end - begin));
  });
}

// ---- Tables -----------------------------------------------------------------------------------------------

// A function of 16 bits has 65,536 results. Those of activations lie close together, so that the part of the
// table that is used stays in the first cache; looking one up takes a fifth of the time of computing it.
constexpr std::int64_t arguments = 65536;

std::vector<float> all_arguments(DType dtype) {
  std::vector<std::uint16_t> bits(arguments);
  std::iota(bits.begin(), bits.end(), std::uint16_t{0});
  std::vector<float> made(arguments);
  widen(dtype, bits.data(), 0, arguments, made.data());
  return made;
}

// By the argument's bits: the result, rounded.
template <Kind kind, DType dtype>
const std::vector<std::uint16_t>& results_of() {
  static const std::vector<std::uint16_t> made = [] {
    std::vector<float> values = all_arguments(dtype);
    vector_math().front().nonlinearity({.kind = kind}, values.data(), values.data(), arguments);
    std::vector<std::uint16_t> rounded(arguments);
    round(dtype, values.data(), arguments, rounded.data(), 0);
    return rounded;
  }();
  return made;
}

// By the argument's bits: the derivative.
template <Kind kind, DType dtype>
const std::vector<float>& slopes_of() {
  static const std::vector<float> made = [] {
    const std::vector<float> values = all_arguments(dtype), ones(arguments, 1.0F);
    std::vector<float> slopes(arguments);
    vector_math().front().nonlinearity_grad({.kind = kind}, ones.data(), values.data(), slopes.data(),
                                            arguments);
    return slopes;
  }();
  return made;
}

// Calls use(kind, dtype), both known to the compiler, for those that have tables. False: it has none.
template <class Use>
bool with_table(Kind kind, DType dtype, const Use& use) {
  const auto with_dtype = [&](auto known_kind) {
    if (dtype == DType::bfloat16)
      return use(known_kind, std::integral_constant<DType, DType::bfloat16>()), true;
    if (dtype == DType::float16)
      return use(known_kind, std::integral_constant<DType, DType::float16>()), true;
    return false;
  };
  switch (kind) {
    case Kind::gelu:
      return with_dtype(std::integral_constant<Kind, Kind::gelu>());
    case Kind::gelu_tanh:
      return with_dtype(std::integral_constant<Kind, Kind::gelu_tanh>());
    case Kind::silu:
      return with_dtype(std::integral_constant<Kind, Kind::silu>());
    case Kind::softplus:
      return with_dtype(std::integral_constant<Kind, Kind::softplus>());
    default:
      return false;
  }
}

// Few elements are computed: they get the same bits.
bool look_up(Kind kind, DType dtype, const void* x, void* y, std::int64_t count, int threads) {
  if (count < arguments) return false;
  return with_table(kind, dtype, [&](auto known_kind, auto known_dtype) {
    const std::uint16_t* const results = results_of<known_kind(), known_dtype()>().data();
    const auto* const from = static_cast<const std::uint16_t*>(x);
    auto* const to = static_cast<std::uint16_t*>(y);
    parallel_for(count, elementwise_grain, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = results[from[i]];
    });
  });
}

bool look_up_grad(Kind kind, DType dtype, const void* dy, const void* x, void* dx, std::int64_t count,
                  int threads) {
  if (count < arguments) return false;
  return with_table(kind, dtype, [&](auto known_kind, auto known_dtype) {
    const float* const all = slopes_of<known_kind(), known_dtype()>().data();
    const auto* const from = static_cast<const std::uint16_t*>(x);
    for_tiles(count, threads, [&](std::int64_t begin, std::int64_t size) {
      float gradients[tile], slopes[tile];
      widen(dtype, dy, begin, size, gradients);
      for (std::int64_t i = 0; i < size; ++i) slopes[i] = all[from[begin + i]];
      for (std::int64_t i = 0; i < size; ++i) gradients[i] *= slopes[i];
      round(dtype, gradients, size, dx, begin);
    });
  });
}

// relu and leaky_relu of whole numbers: the slope is cut off to one.
void whole_nonlinearity(const Nonlinearity& what, DType dtype, const void* x, void* y, std::int64_t count,
                        int threads) {
  const auto slope =
      what.kind == Kind::relu ? 0 : static_cast<std::uint64_t>(static_cast<std::int64_t>(what.alpha));
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto f = [slope](T v) {
      return v > T{0} ? v : static_cast<T>(slope * static_cast<std::uint64_t>(v));
    };
    if constexpr (std::is_integral_v<T>)
      each(f, count, threads, static_cast<T*>(y), static_cast<const T*>(x));
  });
}

}  // namespace

void nonlinearity(const Nonlinearity& what, DType dtype, const void* x, void* y, std::int64_t count,
                  int threads) {
  if (!is_floating(dtype)) return whole_nonlinearity(what, dtype, x, y, count, threads);
  if (what.kind == Kind::relu && dtype == DType::bfloat16)
    return in_parts(bfloat16_loops().relu, count, threads, static_cast<bfloat16*>(y),
                    static_cast<const bfloat16*>(x));
  if (look_up(what.kind, dtype, x, y, count, threads)) return;
  if (has_16_bits(dtype) && has_vector_math(what.kind))
    return for_tiles(count, threads, [&](std::int64_t begin, std::int64_t size) {
      float values[tile];
      widen(dtype, x, begin, size, values);
      vector_math().front().nonlinearity(what, values, values, size);
      round(dtype, values, size, y, begin);
    });
  with_floating_element(dtype, [&](auto zero) {
    using T = decltype(zero);
    with_function<Computed<T>>(
        what, [&](const auto& f) { each(f, count, threads, static_cast<T*>(y), static_cast<const T*>(x)); });
  });
}

void nonlinearity_grad(const Nonlinearity& what, DType dtype, const void* dy, const void* value, void* dx,
                       std::int64_t count, int threads) {
  if (what.kind == Kind::relu && dtype == DType::bfloat16)
    return in_parts(bfloat16_loops().relu_grad, count, threads, static_cast<bfloat16*>(dx),
                    static_cast<const bfloat16*>(dy), static_cast<const bfloat16*>(value));
  if (look_up_grad(what.kind, dtype, dy, value, dx, count, threads)) return;
  if (has_16_bits(dtype) && has_vector_math_grad(what.kind))
    return for_tiles(count, threads, [&](std::int64_t begin, std::int64_t size) {
      float slopes[tile], values[tile];
      widen(dtype, dy, begin, size, slopes);
      widen(dtype, value, begin, size, values);
      vector_math().front().nonlinearity_grad(what, slopes, values, slopes, size);
      round(dtype, slopes, size, dx, begin);
    });
  with_floating_element(dtype, [&](auto zero) {
    using T = decltype(zero);
    with_derivative<Computed<T>>(what, [&](const auto& f) {
      each(f, count, threads, static_cast<T*>(dx), static_cast<const T*>(dy), static_cast<const T*>(value));
    });
  });
}

}  // namespace muster::kernels
