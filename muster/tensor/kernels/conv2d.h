// Convolutions of images (N, C, H, W), and their gradients: the definitions.
#pragma once

#include <cstdint>

namespace muster::kernels {

// y[n][o][i][j] = bias[o] + sum over c, p, q of
//   x[n][g C/groups + c][i stride - pad + p dilation][j ...] weight[o][c][p][q],
// g the group of o, x zero outside the image.
struct Conv2dSize {
  std::int64_t batch = 0;
  std::int64_t in_channels = 0;
  std::int64_t in_height = 0;
  std::int64_t in_width = 0;
  std::int64_t out_channels = 0;
  std::int64_t out_height = 0;
  std::int64_t out_width = 0;
  std::int64_t kernel_height = 1;
  std::int64_t kernel_width = 1;
  std::int64_t stride_height = 1;
  std::int64_t stride_width = 1;
  std::int64_t pad_top = 0;
  std::int64_t pad_bottom = 0;
  std::int64_t pad_left = 0;
  std::int64_t pad_right = 0;
  std::int64_t dilation_height = 1;
  std::int64_t dilation_width = 1;
  std::int64_t groups = 1;
};

// `bias` may be null. T is float or double here and below; sums run in double, in one order.
template <class T>
struct Conv2dArguments {
  const T* x = nullptr;
  const T* weight = nullptr;
  const T* bias = nullptr;
  T* y = nullptr;
  bool relu = false;  // y = max(y, 0)
  int threads = 1;
};
template <class T>
void conv2d(const Conv2dSize& size, const Conv2dArguments<T>& arguments);

template <class T>
struct Conv2dGradInputArguments {
  const T* dy = nullptr;
  const T* weight = nullptr;
  T* dx = nullptr;
  int threads = 1;
};
template <class T>
void conv2d_grad_input(const Conv2dSize& size, const Conv2dGradInputArguments<T>& arguments);

template <class T>
struct Conv2dGradWeightArguments {
  const T* x = nullptr;
  const T* dy = nullptr;
  T* dweight = nullptr;
  int threads = 1;
};
template <class T>
void conv2d_grad_weight(const Conv2dSize& size, const Conv2dGradWeightArguments<T>& arguments);

// out[c] = the sum of x (batch, channels, inner) over all but c.
template <class T>
void channel_sum(const T* x, T* out, std::int64_t batch, std::int64_t channels, std::int64_t inner);

}  // namespace muster::kernels
