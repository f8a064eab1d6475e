// Root mean square normalization over rows. x, y and their gradients are float32, float64 or bfloat16, all
// others float64 beside float64 and else float32; sums are computed in double.
#pragma once

#include <cstdint>

#include "muster/base/base.h"

namespace muster::kernels {

struct RmsNormSize {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};

// y = x rstd gamma, rstd = 1 / sqrt(mean(x^2) + epsilon), by row; gamma (columns).
struct RmsNormArguments {
  const void* x = nullptr;
  const void* gamma = nullptr;
  double epsilon = 0;
  void* y = nullptr;
  void* rstd = nullptr;  // (rows)
};
void rms_norm(const RmsNormSize& size, DType dtype, const RmsNormArguments& arguments, int threads);

struct RmsNormGradArguments {
  const void* dy = nullptr;
  const void* x = nullptr;
  const void* gamma = nullptr;
  const void* rstd = nullptr;
  void* dx = nullptr;
  void* dgamma = nullptr;
};
void rms_norm_grad(const RmsNormSize& size, DType dtype, const RmsNormGradArguments& arguments, int threads);

}  // namespace muster::kernels
