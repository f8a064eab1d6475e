// Layer normalization over rows. x, y and their gradients are float32, float64 or bfloat16, all others
// float64 beside float64 and else float32; means and variances are computed in double.
#pragma once

#include <cstdint>

#include "muster/base/base.h"

namespace muster::kernels {

struct LayerNormSize {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  double eps = 0;
};

// y = (x - mean) rstd gamma + beta, rstd = 1 / sqrt(variance + eps), by row; gamma and beta (columns).
struct LayerNormArguments {
  const void* x = nullptr;
  const void* gamma = nullptr;
  const void* beta = nullptr;
  void* y = nullptr;
  void* mean = nullptr;  // (rows)
  void* rstd = nullptr;  // (rows)
};
void layer_norm(const LayerNormSize& size, DType dtype, const LayerNormArguments& arguments, int threads);

struct LayerNormGradArguments {
  const void* dy = nullptr;
  const void* x = nullptr;
  const void* gamma = nullptr;
  const void* mean = nullptr;
  const void* rstd = nullptr;
  void* dx = nullptr;
  void* dgamma = nullptr;
  void* dbeta = nullptr;
};
void layer_norm_grad(const LayerNormSize& size, DType dtype, const LayerNormGradArguments& arguments,
                     int threads);

}  // namespace muster::kernels
