#include "muster/tensor/kernels/unary.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "muster/tensor/kernels/elementwise_loops.h"
#include "muster/tensor/kernels/types.h"

namespace muster::kernels {
namespace {

// Integers wrap around, as numpy's do.
template <class T>
T negated(T x) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
  return -x;
}

template <class T>
T squared(T x) {
  if constexpr (std::is_integral_v<T>) {
    const auto wide = static_cast<std::make_unsigned_t<T>>(x);
    return static_cast<T>(wide * wide);
  }
  return x * x;
}

template <class T>
T sign_of(T x) {
  if (x > 0) return 1;
  return x < 0 ? T{-1} : x;  // NaN stays NaN
}

template <class F>
void over_numbers(DType dtype, const void* x, void* y, std::int64_t count, int threads, const F& f) {
  with_number_element(dtype, [&](auto zero) {
    using T = decltype(zero);
    each(f, count, threads, static_cast<T*>(y), static_cast<const T*>(x));
  });
}

template <class F>
void over_floating(DType dtype, const void* x, void* y, std::int64_t count, int threads, const F& f) {
  with_floating_element(dtype, [&](auto zero) {
    using T = decltype(zero);
    each(f, count, threads, static_cast<T*>(y), static_cast<const T*>(x));
  });
}

template <class F>
void over_floating_to_bool(DType dtype, const void* x, bool* y, std::int64_t count, int threads, const F& f) {
  with_floating_element(dtype, [&](auto zero) {
    using T = decltype(zero);
    each(f, count, threads, y, static_cast<const T*>(x));
  });
}

}  // namespace

void unary(Unary kind, DType dtype, const void* x, void* y, std::int64_t count, int threads) {
  const auto numbers = [&](const auto& f) { over_numbers(dtype, x, y, count, threads, f); };
  const auto floating = [&](const auto& f) { over_floating(dtype, x, y, count, threads, f); };
  switch (kind) {
    case Unary::neg:
      return numbers([](auto v) { return negated(v); });
    case Unary::abs:
      return numbers([](auto v) { return v < 0 ? negated(v) : (v == 0 ? decltype(v){0} : v); });
    case Unary::sign:
      return numbers([](auto v) { return sign_of(v); });
    case Unary::square:
      return numbers([](auto v) { return squared(v); });
    case Unary::reciprocal:
      return floating([](auto v) { return 1 / v; });
    case Unary::sqrt:
      return floating([](auto v) { return std::sqrt(v); });
    case Unary::rsqrt:
      return floating([](auto v) { return 1 / std::sqrt(v); });
    case Unary::exp:
      return floating([](auto v) { return std::exp(v); });
    case Unary::expm1:
      return floating([](auto v) { return std::expm1(v); });
    case Unary::log:
      return floating([](auto v) { return std::log(v); });
    case Unary::log1p:
      return floating([](auto v) { return std::log1p(v); });
    case Unary::erf:
      return floating([](auto v) { return std::erf(v); });
    case Unary::sin:
      return floating([](auto v) { return std::sin(v); });
    case Unary::cos:
      return floating([](auto v) { return std::cos(v); });
    case Unary::floor:
      return floating([](auto v) { return std::floor(v); });
    case Unary::ceil:
      return floating([](auto v) { return std::ceil(v); });
    case Unary::round:
      return floating([](auto v) { return std::nearbyint(v); });
  }
}

void predicate(Predicate kind, DType dtype, const void* x, bool* y, std::int64_t count, int threads) {
  const auto floating = [&](const auto& f) { over_floating_to_bool(dtype, x, y, count, threads, f); };
  switch (kind) {
    case Predicate::isnan:
      return floating([](auto v) { return std::isnan(v); });
    case Predicate::isinf:
      return floating([](auto v) { return std::isinf(v); });
    case Predicate::isfinite:
      return floating([](auto v) { return std::isfinite(v); });
    case Predicate::logical_not:
      return with_type(dtype, [&](auto zero) {
        using T = decltype(zero);
        each([](auto v) { return v == decltype(v){0}; }, count, threads, y, static_cast<const T*>(x));
      });
  }
}

void clip(ClipBounds bounds, DType dtype, const void* x, void* y, std::int64_t count, int threads) {
  with_number_element(dtype, [&](auto zero) {
    using T = decltype(zero);
    using Number = Computed<T>;
    const auto bound = [](double value) {
      if constexpr (std::is_integral_v<T>) {
        if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
        if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
      }
      return static_cast<Number>(static_cast<T>(value));
    };
    const Number low = bound(bounds.low);
    const Number high = bound(bounds.high);
    each(
        [low, high](Number v) {
          const Number raised = v < low ? low : v;
          return raised > high ? high : raised;
        },
        count, threads, static_cast<T*>(y), static_cast<const T*>(x));
  });
}

}  // namespace muster::kernels
