// Convolutions of volumes (N, C, D, H, W), and their gradients: the definitions.
#pragma once

#include <array>
#include <cstdint>

namespace muster::kernels {

// y[n][o][i] = sum over c and the places p of the kernel of
//   x[n][g C/groups + c][i stride - pad_before + p dilation] weight[o][c][p],
// i and p of three axes, g the group of o, x zero outside the volume.
struct Conv3dSize {
  using Axes = std::array<std::int64_t, 3>;  // depth, height, width

  std::int64_t batch = 0;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t groups = 1;
  Axes in = {};
  Axes out = {};
  Axes kernel = {1, 1, 1};
  Axes stride = {1, 1, 1};
  Axes pad_before = {};
  Axes pad_after = {};
  Axes dilation = {1, 1, 1};
};

// T is float or double; sums run in double, in one order.
template <class T>
void conv3d(const Conv3dSize& size, const T* x, const T* weight, T* y, int threads);
template <class T>
void conv3d_grad_input(const Conv3dSize& size, const T* dy, const T* weight, T* dx, int threads);
template <class T>
void conv3d_grad_weight(const Conv3dSize& size, const T* x, const T* dy, T* dweight, int threads);

}  // namespace muster::kernels
