// Functions of float32 numbers on whole vectors, without a call to the C library: each is a polynomial after
// the usual reduction of the argument. What they give depends on the argument alone: every instruction set
// gives the same bits, since no multiplication is fused with an addition, and so do all sizes and numbers of
// threads.
//
// How far they are from the exact result, in units of its last place (tests measure it): exp and log 1.5,
// expm1 and log1p 2.5, sigmoid, tanh, softplus and elu 3, erf 3.5, silu 4, gelu 10; gelu by tanh 250, so many
// only far below zero, where its own formula loses them. That holds for results above 1e-36 in size.
// Infinities, NaN and zeros come out as they do from the C library.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "muster/tensor/cpu.h"
#include "muster/tensor/kernels/nonlinearity.h"
#include "muster/tensor/kernels/unary.h"

namespace muster::kernels {

// The sum of e^x over a line is `sum` e^greatest.
struct PowerSum {
  float greatest = 0;
  double sum = 0;
};

// `rows` lines of `columns` neighbours each.
struct VectorLines {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// One instruction set's. Outputs may be inputs; all work on the calling thread.
struct VectorMath {
  Isa isa = Isa::none;
  std::string_view name;  // "avx512"
  void (*unary)(Unary kind, const float* x, float* y, std::int64_t count);
  void (*nonlinearity)(const Nonlinearity& what, const float* x, float* y, std::int64_t count);
  // `value` is what derivative_of_output says.
  void (*nonlinearity_grad)(const Nonlinearity& what, const float* dy, const float* value, float* dx,
                            std::int64_t count);
  // Of each line, or with `logarithm` its logarithm; sums run in double. `sums`: null, or one for each line.
  void (*softmax)(bool logarithm, const VectorLines& lines, const float* x, float* y, PowerSum* sums);
  void (*softmax_grad)(bool logarithm, const float* dy, const float* y, float* dx, std::int64_t count);
};

// Those that this processor can run, best first. Never empty: the last is for every processor.
std::span<const VectorMath> vector_math();

// Whether the functions above know it.
bool has_vector_math(Unary kind);
bool has_vector_math(Nonlinearity::Kind kind);
bool has_vector_math_grad(Nonlinearity::Kind kind);

// All elements, on several threads.
void vector_unary(const VectorMath& math, Unary kind, const float* x, float* y, std::int64_t count,
                  int threads);
void vector_nonlinearity(const VectorMath& math, const Nonlinearity& what, const float* x, float* y,
                         std::int64_t count, int threads);
void vector_nonlinearity_grad(const VectorMath& math, const Nonlinearity& what, const float* dy,
                              const float* value, float* dx, std::int64_t count, int threads);
void vector_softmax(const VectorMath& math, bool logarithm, const VectorLines& lines, const float* x,
                    float* y, int threads);
void vector_softmax_grad(const VectorMath& math, bool logarithm, const VectorLines& lines, const float* dy,
                         const float* y, float* dx, int threads);

}  // namespace muster::kernels
