#include "muster/tensor/kernels/binary.h"

#include <cmath>
#include <type_traits>

#include "muster/tensor/kernels/bfloat16_loops.h"
#include "muster/tensor/kernels/elementwise_loops.h"
#include "muster/tensor/kernels/pair_loops.h"
#include "muster/tensor/kernels/types.h"

namespace muster::kernels {
namespace {

// Signed integers overflow without a meaning in C++; unsigned ones wrap around.
template <class T>
using Wrapping =
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::common_type<T>>::type;

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};

struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

template <class T>
bool is_minus_one(T x) {
  return std::is_signed_v<T> && x == static_cast<T>(-1);
}

template <class T>
bool is_negative(T x) {
  if constexpr (std::is_unsigned_v<T>) return false;
  return x < 0;
}

struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return 0;                        // numpy's answer; C++ has none
      if (is_minus_one(b)) return Sub()(T{0}, a);  // the smallest has no opposite
    }
    return a / b;
  }
};

struct FloorDiv {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      const T quotient = Div()(a, b);
      const bool uneven = b != 0 && !is_minus_one(b) && a % b != 0;
      return uneven && is_negative(a) != is_negative(b) ? quotient - 1 : quotient;
    } else {
      return std::floor(a / b);
    }
  }
};

struct Mod {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0 || is_minus_one(b)) return 0;
      const T rest = a % b;
      return rest != 0 && is_negative(rest) != is_negative(b) ? rest + b : rest;
    } else {
      const T rest = std::fmod(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
  }
};

struct Pow {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return whole_power(a, b);
    else
      return std::pow(a, b);
  }
  // Negative powers of whole numbers round towards zero.
  template <class T>
  static T whole_power(T a, T b) {
    if (is_negative(b)) return a == 1 ? 1 : (is_minus_one(a) ? (b % 2 == 0 ? 1 : T(-1)) : 0);
    T result = 1;
    for (T square = a; b > 0; b /= 2, square = Mul()(square, square))
      if (b % 2 != 0) result = Mul()(result, square);
    return result;
  }
};

// NaN wins.
struct Maximum {
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

struct Minimum {
  template <class T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

template <class Use>
void with_functor(Binary kind, const Use& use) {
  switch (kind) {
    case Binary::add:
      return use(Add());
    case Binary::sub:
      return use(Sub());
    case Binary::mul:
      return use(Mul());
    case Binary::div:
      return use(Div());
    case Binary::pow:
      return use(Pow());
    case Binary::maximum:
      return use(Maximum());
    case Binary::minimum:
      return use(Minimum());
    case Binary::floor_div:
      return use(FloorDiv());
    case Binary::mod:
      return use(Mod());
  }
}

template <class Use>
void with_functor(Comparison kind, const Use& use) {
  switch (kind) {
    case Comparison::equal:
      return use([](auto a, auto b) { return a == b; });
    case Comparison::not_equal:
      return use([](auto a, auto b) { return a != b; });
    case Comparison::less:
      return use([](auto a, auto b) { return a < b; });
    case Comparison::less_equal:
      return use([](auto a, auto b) { return a <= b; });
    case Comparison::greater:
      return use([](auto a, auto b) { return a > b; });
    case Comparison::greater_equal:
      return use([](auto a, auto b) { return a >= b; });
    case Comparison::logical_and:
      return use([](auto a, auto b) { return a != decltype(a){0} && b != decltype(b){0}; });
    case Comparison::logical_or:
      return use([](auto a, auto b) { return a != decltype(a){0} || b != decltype(b){0}; });
  }
}

// One run of pairs. Within a run an operand goes along (stride 1) or stands still (stride 0).
template <class F, class In, class Out>
void run_of_pairs(const void* a_data, std::int64_t a_stride, const void* b_data, std::int64_t b_stride,
                  void* out_data, std::int64_t count) {
  using Number = Computed<In>;
  const auto f = [](Number left, Number right) { return static_cast<Out>(F()(left, right)); };
  const In* const a = static_cast<const In*>(a_data);
  const In* const b = static_cast<const In*>(b_data);
  Out* const out = static_cast<Out*>(out_data);
  if (a_stride == 1 && b_stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = f(a[i], b[i]);
  } else if (a_stride == 1) {
    const Number right = *b;
    for (std::int64_t i = 0; i < count; ++i) out[i] = f(a[i], right);
  } else if (b_stride == 1) {
    const Number left = *a;
    for (std::int64_t i = 0; i < count; ++i) out[i] = f(left, b[i]);
  } else {
    const Out both = f(*a, *b);
    for (std::int64_t i = 0; i < count; ++i) out[i] = both;
  }
}

template <class F, class In, class Out>
void one_pair(const void* a, const void* b, void* out) {
  const auto number = [](const void* x) { return static_cast<Computed<In>>(*static_cast<const In*>(x)); };
  *static_cast<Out*>(out) = static_cast<Out>(F()(number(a), number(b)));
}

// What is compiled for each functor and dtype: little, since there are many. What walks the shapes stands
// once.
struct PairKernel {
  void (*run)(const void* a, std::int64_t a_stride, const void* b, std::int64_t b_stride, void* out,
              std::int64_t count);
  void (*one)(const void* a, const void* b, void* out);  // the oracle
  std::size_t in_bytes;
  std::size_t out_bytes;
};

template <class F, class In, class Out>
PairKernel pair_kernel() {
  return {run_of_pairs<F, In, Out>, one_pair<F, In, Out>, sizeof(In), sizeof(Out)};
}

// Whether the bits of the result are those of int64.
bool is_blind_to_signs(Binary kind) {
  return kind == Binary::add || kind == Binary::sub || kind == Binary::mul;
}

PairKernel pair_kernel(Binary kind, DType dtype) {
  PairKernel kernel{};
  if (dtype == DType::uint64 && is_blind_to_signs(kind)) dtype = DType::int64;
  const PairLoop wide = pair_loop(kind, dtype);
  with_functor(kind, [&](auto f) {
    if (dtype == DType::uint64) {
      kernel = pair_kernel<decltype(f), std::uint64_t, std::uint64_t>();
      return;
    }
    with_number_element(
        dtype, [&](auto zero) { kernel = pair_kernel<decltype(f), decltype(zero), decltype(zero)>(); });
  });
  if (wide != nullptr) kernel.run = wide;
  return kernel;
}

PairKernel pair_kernel(Comparison kind, DType dtype) {
  PairKernel kernel{};
  with_functor(kind, [&](auto f) {
    if (dtype == DType::uint64) {
      kernel = pair_kernel<decltype(f), std::uint64_t, bool>();
      return;
    }
    with_type(dtype, [&](auto zero) { kernel = pair_kernel<decltype(f), decltype(zero), bool>(); });
  });
  return kernel;
}

const std::byte* element(const void* data, std::int64_t index, std::size_t element_bytes) {
  return static_cast<const std::byte*>(data) + index * static_cast<std::int64_t>(element_bytes);
}

std::byte* element(void* data, std::int64_t index, std::size_t element_bytes) {
  return static_cast<std::byte*>(data) + index * static_cast<std::int64_t>(element_bytes);
}

// out = f(a, b) with broadcasting; out may be an operand that is not repeated.
void each_pair(const PairKernel& kernel, const BroadcastLoops& loops, int threads, const Pair& pair) {
  const std::int64_t a_stride = loops.strides[0].back();
  const std::int64_t b_stride = loops.strides[1].back();
  parallel_for(loops.count, elementwise_grain, threads, [&](std::int64_t begin, std::int64_t end) {
    for_each_run<2>(loops, begin, end, [&](const auto& offsets, std::int64_t at, std::int64_t count) {
      kernel.run(element(pair.a, offsets[0], kernel.in_bytes), a_stride,
                 element(pair.b, offsets[1], kernel.in_bytes), b_stride,
                 element(pair.out, at, kernel.out_bytes), count);
    });
  });
}

// The same, one element after another: the oracle.
void each_pair_reference(const PairKernel& kernel, const std::array<Shape, 3>& shapes, const Pair& pair) {
  const auto& [a_shape, b_shape, out_shape] = shapes;
  const auto a_strides = broadcast_strides(a_shape, out_shape);
  const auto b_strides = broadcast_strides(b_shape, out_shape);
  const std::int64_t count = out_shape.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t a_at = 0;
    std::int64_t b_at = 0;
    std::int64_t rest = i;
    for (std::size_t axis = out_shape.rank(); axis-- > 0; rest /= out_shape[axis]) {
      a_at += rest % out_shape[axis] * a_strides[axis];
      b_at += rest % out_shape[axis] * b_strides[axis];
    }
    kernel.one(element(pair.a, a_at, kernel.in_bytes), element(pair.b, b_at, kernel.in_bytes),
               element(pair.out, i, kernel.out_bytes));
  }
}

// Whether both operands lie as the result does.
bool walks_alike(const BroadcastLoops& loops) {
  return loops.sizes.size() == 1 && loops.strides[0][0] == 1 && loops.strides[1][0] == 1;
}

// What moves elements looks at their size only.
template <class Use>
void with_size(std::size_t size_bytes, const Use& use) {
  if (size_bytes == 1) return use(std::uint8_t{});
  if (size_bytes == 2) return use(std::uint16_t{});
  if (size_bytes == 4) return use(std::uint32_t{});
  MUSTER_CHECK(size_bytes == 8, "elements have 1, 2, 4 or 8 bytes");
  use(std::uint64_t{});
}

}  // namespace

void binary(Binary kind, DType dtype, const BroadcastLoops& loops, const Pair& pair, int threads) {
  if (kind == Binary::add && dtype == DType::bfloat16 && walks_alike(loops))
    return in_parts(bfloat16_loops().add, loops.count, threads, static_cast<bfloat16*>(pair.out),
                    static_cast<const bfloat16*>(pair.a), static_cast<const bfloat16*>(pair.b));
  each_pair(pair_kernel(kind, dtype), loops, threads, pair);
}

void binary_reference(Binary kind, DType dtype, const std::array<Shape, 3>& shapes, const Pair& pair) {
  each_pair_reference(pair_kernel(kind, dtype), shapes, pair);
}

void compare(Comparison kind, DType dtype, const BroadcastLoops& loops, const Pair& pair, int threads) {
  each_pair(pair_kernel(kind, dtype), loops, threads, pair);
}

void compare_reference(Comparison kind, DType dtype, const std::array<Shape, 3>& shapes, const Pair& pair) {
  each_pair_reference(pair_kernel(kind, dtype), shapes, pair);
}

void select(std::size_t size_bytes, const BroadcastLoops& loops, const Choice& choice, int threads) {
  const std::array<std::int64_t, 3> step = {loops.strides[0].back(), loops.strides[1].back(),
                                            loops.strides[2].back()};
  with_size(size_bytes, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(loops.count, elementwise_grain, threads, [&](std::int64_t begin, std::int64_t end) {
      for_each_run<3>(loops, begin, end, [&](const auto& offsets, std::int64_t at, std::int64_t count) {
        const bool* condition = choice.condition + offsets[0];
        const T* a = static_cast<const T*>(choice.a) + offsets[1];
        const T* b = static_cast<const T*>(choice.b) + offsets[2];
        T* out = static_cast<T*>(choice.out) + at;
        for (std::int64_t i = 0; i < count; ++i)
          out[i] = condition[i * step[0]] ? a[i * step[1]] : b[i * step[2]];
      });
    });
  });
}

}  // namespace muster::kernels
