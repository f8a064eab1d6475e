// The functions between the layers of a network, and their derivatives. float32, float64 or bfloat16.
#pragma once

#include <cstdint>

#include "muster/base/base.h"

namespace muster::kernels {

struct Nonlinearity {
  enum class Kind {
    relu,        // max(x, 0); NaN stays NaN
    relu6,       // min(max(x, 0), 6)
    leaky_relu,  // x where x > 0, else alpha x
    elu,         // x where x > 0, else alpha (e^x - 1)
    sigmoid,     // 1 / (1 + e^-x)
    tanh,
    gelu,       // x P(X <= x) for X ~ N(0, 1)
    gelu_tanh,  // its approximation by tanh
    silu,       // x sigmoid(x)
    softplus    // log(1 + e^x)
  };
  Kind kind = Kind::relu;
  double alpha = 0;
};

// y may be x.
void nonlinearity(const Nonlinearity& what, DType dtype, const void* x, void* y, std::int64_t count,
                  int threads);

// Whether the derivative is computed from the output y instead of the input x.
constexpr bool derivative_of_output(Nonlinearity::Kind kind) {
  using Kind = Nonlinearity::Kind;
  return kind == Kind::relu || kind == Kind::sigmoid || kind == Kind::tanh;
}

// dx = dy f'; `value` is y or x, as derivative_of_output says. dx may be dy.
void nonlinearity_grad(const Nonlinearity& what, DType dtype, const void* dy, const void* value, void* dx,
                       std::int64_t count, int threads);

}  // namespace muster::kernels
