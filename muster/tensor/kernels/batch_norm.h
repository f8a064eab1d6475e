// Batch normalisation of (N, C, inner) by channel, and its gradient: the definitions. T is float or double.
#pragma once

#include <cstdint>
#include <vector>

namespace muster::kernels {

struct BatchNormSize {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t inner = 1;                // elements of one plane
  std::vector<std::int64_t> plane = {};  // its axes
  double eps = 1e-5;
  double momentum = 0.9;
  bool training = false;

  std::int64_t count() const { return batch * inner; }  // elements of one channel
  // What a moving statistic is after the batch.
  double moved(double moving, double found) const { return momentum * moving + (1 - momentum) * found; }
  // What the batch's variance (over count) is multiplied by on its way into the moving one: over count - 1.
  double unbiased() const {
    return count() > 1 ? static_cast<double>(count()) / static_cast<double>(count() - 1) : 1.0;
  }
};

// y = (x - mean) / sqrt(variance + eps) gamma + beta. In training mean and variance (over count) are the
// batch's, and moving = momentum moving + (1 - momentum) batch is written, the variance unbiased; else they
// are the moving ones. Both are written out for the gradient.
template <class T>
struct BatchNormArguments {
  const T* x = nullptr;
  const T* gamma = nullptr;
  const T* beta = nullptr;
  T* moving_mean = nullptr;
  T* moving_variance = nullptr;
  T* y = nullptr;
  T* mean = nullptr;
  T* variance = nullptr;
  std::uint8_t* mask = nullptr;  // if there is one: y = max(y, 0), and 1 where y > 0
  int threads = 1;
};
template <class T>
void batch_norm(const BatchNormSize& size, const BatchNormArguments<T>& arguments);

template <class T>
struct BatchNormGradArguments {
  const T* x = nullptr;
  const T* dy = nullptr;
  const T* gamma = nullptr;
  const T* mean = nullptr;
  const T* variance = nullptr;
  const std::uint8_t* mask = nullptr;  // if there is one: dy counts where it is 1
  T* dx = nullptr;
  T* dgamma = nullptr;
  T* dbeta = nullptr;
  int threads = 1;
};
template <class T>
void batch_norm_grad(const BatchNormSize& size, const BatchNormGradArguments<T>& arguments);

}  // namespace muster::kernels
