// Pooling of images (N, C, H, W), and its gradients: the definitions. T is float or double.
#pragma once

#include <cstdint>

namespace muster::kernels {

// The window of output (i, j) begins at input (i stride_height - pad_top, j stride_width - pad_left).
struct Pool2dSize {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t in_height = 0;
  std::int64_t in_width = 0;
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
  bool count_include_pad =
      false;  // averages divide by the window's pixels in the padded image, not the image
};

// `positions` says which pixel of its window each maximum is, p * kernel_width + q, the first of equals.
// P is uint8 for windows of at most 255 pixels, else int32. NaN counts as greatest.
template <class T, class P>
struct MaxPool2dArguments {
  const T* x = nullptr;
  T* y = nullptr;
  P* positions = nullptr;
  int threads = 1;
};
template <class T, class P>
void max_pool2d(const Pool2dSize& size, const MaxPool2dArguments<T, P>& arguments);

template <class T, class P>
struct MaxPool2dGradArguments {
  const T* dy = nullptr;
  const P* positions = nullptr;
  T* dx = nullptr;
  int threads = 1;
};
template <class T, class P>
void max_pool2d_grad(const Pool2dSize& size, const MaxPool2dGradArguments<T, P>& arguments);

// y is the average of each window; backwards x is what flows in (dy) and y what comes out (dx).
template <class T>
struct AvgPool2dArguments {
  const T* x = nullptr;
  T* y = nullptr;
  int threads = 1;
};
template <class T>
void avg_pool2d(const Pool2dSize& size, const AvgPool2dArguments<T>& arguments);
template <class T>
void avg_pool2d_grad(const Pool2dSize& size, const AvgPool2dArguments<T>& arguments);

// Output i averages the inputs [floor(i in / out), ceil((i + 1) in / out)) of each axis. Of `size` only
// batch, channels and the sizes of in and out count.
template <class T>
void adaptive_avg_pool2d(const Pool2dSize& size, const AvgPool2dArguments<T>& arguments);
template <class T>
void adaptive_avg_pool2d_grad(const Pool2dSize& size, const AvgPool2dArguments<T>& arguments);

}  // namespace muster::kernels
