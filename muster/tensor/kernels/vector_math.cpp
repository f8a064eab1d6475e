#include "muster/tensor/kernels/vector_math.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "muster/base/base.h"
#include "muster/tensor/cpu.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

// Below this many elements a second thread costs more than it brings.
constexpr std::int64_t elements_per_thread = 8192;

#if defined(__x86_64__)
namespace avx512 {
#define MUSTER_TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#define MUSTER_LANES 16
#include "muster/tensor/kernels/vector_math.inc"
}  // namespace avx512

namespace avx2 {
#define MUSTER_TARGET __attribute__((target("avx2,fma")))
#define MUSTER_LANES 8
#include "muster/tensor/kernels/vector_math.inc"
}  // namespace avx2
#endif

// Four lanes: what every processor that this is built for has.
namespace narrow {
#define MUSTER_TARGET
#define MUSTER_LANES 4
#include "muster/tensor/kernels/vector_math.inc"
}  // namespace narrow

#if defined(__x86_64__)
constexpr std::array<VectorMath, 3> list{avx512::table(Isa::avx512, "avx512"), avx2::table(Isa::avx2, "avx2"),
                                         narrow::table(Isa::none, "sse2")};
#else
constexpr std::array<VectorMath, 1> list{narrow::table(Isa::none, "vectors")};
#endif

}  // namespace

std::span<const VectorMath> vector_math() { return usable_here(std::span<const VectorMath>(list)); }

bool has_vector_math(Unary kind) {
  return kind == Unary::exp || kind == Unary::expm1 || kind == Unary::log || kind == Unary::log1p ||
         kind == Unary::erf;
}

bool has_vector_math(Nonlinearity::Kind kind) {
  using Kind = Nonlinearity::Kind;
  return kind == Kind::sigmoid || kind == Kind::tanh || has_vector_math_grad(kind);
}

bool has_vector_math_grad(Nonlinearity::Kind kind) {
  using Kind = Nonlinearity::Kind;
  return kind == Kind::elu || kind == Kind::gelu || kind == Kind::gelu_tanh || kind == Kind::silu ||
         kind == Kind::softplus;
}

void vector_unary(const VectorMath& math, Unary kind, const float* x, float* y, std::int64_t count,
                  int threads) {
  parallel_for(count, elements_per_thread, threads, [&](std::int64_t begin, std::int64_t end) {
    math.unary(kind, x + begin, y + begin, end - begin);
  });
}

void vector_nonlinearity(const VectorMath& math, const Nonlinearity& what, const float* x, float* y,
                         std::int64_t count, int threads) {
  parallel_for(count, elements_per_thread, threads, [&](std::int64_t begin, std::int64_t end) {
    math.nonlinearity(what, x + begin, y + begin, end - begin);
  });
}

void vector_nonlinearity_grad(const VectorMath& math, const Nonlinearity& what, const float* dy,
                              const float* value, float* dx, std::int64_t count, int threads) {
  parallel_for(count, elements_per_thread, threads, [&](std::int64_t begin, std::int64_t end) {
    math.nonlinearity_grad(what, dy + begin, value + begin, dx + begin, end - begin);
  });
}

namespace {

// body(first line, the one behind the last) for parts of all lines.
template <class Body>
void for_lines(const VectorLines& lines, int threads, const Body& body) {
  if (lines.columns == 0) return;
  parallel_for(lines.rows, std::max<std::int64_t>(1, elements_per_thread / lines.columns), threads, body);
}

}  // namespace

void vector_softmax(const VectorMath& math, bool logarithm, const VectorLines& lines, const float* x,
                    float* y, int threads) {
  for_lines(lines, threads, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * lines.columns;
    math.softmax(logarithm, {end - begin, lines.columns}, x + at, y + at, nullptr);
  });
}

void vector_softmax_grad(const VectorMath& math, bool logarithm, const VectorLines& lines, const float* dy,
                         const float* y, float* dx, int threads) {
  for_lines(lines, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin * lines.columns; at < end * lines.columns; at += lines.columns)
      math.softmax_grad(logarithm, dy + at, y + at, dx + at, lines.columns);
  });
}

}  // namespace muster::kernels
