#include <algorithm>
#include <cmath>

#include "muster/tensor/kernels/pool2d.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

// One window: its first pixel, which may lie in the padding, and the pixels [begin, end) inside the image.
struct Span {
  std::int64_t first = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t padded = 0;  // pixels that lie in the padded image

  std::int64_t size() const { return end - begin; }
};

struct Axis {
  std::int64_t in = 0, out = 0, kernel = 1, stride = 1, pad_before = 0, pad_after = 0;

  Span window(std::int64_t index) const {
    const std::int64_t first = index * stride - pad_before;
    return {.first = first,
            .begin = std::max<std::int64_t>(first, 0),
            .end = std::min(first + kernel, in),
            .padded = std::min(first + kernel, in + pad_after) - first};
  }
  Span adaptive(std::int64_t index) const {
    const std::int64_t begin = index * in / out;
    const std::int64_t end = ((index + 1) * in + out - 1) / out;
    return {.first = begin, .begin = begin, .end = end, .padded = end - begin};
  }
};

Axis height_of(const Pool2dSize& s) {
  return {s.in_height, s.out_height, s.kernel_height, s.stride_height, s.pad_top, s.pad_bottom};
}
Axis width_of(const Pool2dSize& s) {
  return {s.in_width, s.out_width, s.kernel_width, s.stride_width, s.pad_left, s.pad_right};
}

// Calls use(plane, output index within the plane, rows, columns) for each window.
template <class Use>
void for_windows(const Pool2dSize& s, Span (Axis::*window)(std::int64_t) const, int threads, const Use& use) {
  const Axis height = height_of(s);
  const Axis width = width_of(s);
  parallel_for(s.batch * s.channels, 1, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane)
      for (std::int64_t i = 0; i < s.out_height; ++i)
        for (std::int64_t j = 0; j < s.out_width; ++j)
          use(plane, i * s.out_width + j, (height.*window)(i), (width.*window)(j));
  });
}

template <class T>
void average(const Pool2dSize& s, const AvgPool2dArguments<T>& arguments,
             Span (Axis::*window)(std::int64_t) const) {
  const std::int64_t in_plane = s.in_height * s.in_width;
  const std::int64_t out_plane = s.out_height * s.out_width;
  for_windows(s, window, arguments.threads,
              [&](std::int64_t plane, std::int64_t index, const Span& rows, const Span& columns) {
                const T* const x = arguments.x + plane * in_plane;
                double sum = 0;
                for (std::int64_t p = rows.begin; p < rows.end; ++p)
                  for (std::int64_t q = columns.begin; q < columns.end; ++q)
                    sum += static_cast<double>(x[p * s.in_width + q]);
                const std::int64_t pixels =
                    s.count_include_pad ? rows.padded * columns.padded : rows.size() * columns.size();
                arguments.y[plane * out_plane + index] = static_cast<T>(sum / static_cast<double>(pixels));
              });
}

template <class T>
void average_grad(const Pool2dSize& s, const AvgPool2dArguments<T>& arguments,
                  Span (Axis::*window)(std::int64_t) const) {
  const std::int64_t in_plane = s.in_height * s.in_width;
  const std::int64_t out_plane = s.out_height * s.out_width;
  std::fill_n(arguments.y, s.batch * s.channels * in_plane, T{0});
  for_windows(s, window, arguments.threads,
              [&](std::int64_t plane, std::int64_t index, const Span& rows, const Span& columns) {
                T* const dx = arguments.y + plane * in_plane;
                const std::int64_t pixels =
                    s.count_include_pad ? rows.padded * columns.padded : rows.size() * columns.size();
                const T share = arguments.x[plane * out_plane + index] / static_cast<T>(pixels);
                for (std::int64_t p = rows.begin; p < rows.end; ++p)
                  for (std::int64_t q = columns.begin; q < columns.end; ++q) dx[p * s.in_width + q] += share;
              });
}

}  // namespace

template <class T, class P>
void max_pool2d(const Pool2dSize& s, const MaxPool2dArguments<T, P>& arguments) {
  const std::int64_t in_plane = s.in_height * s.in_width;
  const std::int64_t out_plane = s.out_height * s.out_width;
  for_windows(s, &Axis::window, arguments.threads,
              [&](std::int64_t plane, std::int64_t index, const Span& rows, const Span& columns) {
                const T* const x = arguments.x + plane * in_plane;
                T best = x[rows.begin * s.in_width + columns.begin];
                std::int64_t at = (rows.begin - rows.first) * s.kernel_width + columns.begin - columns.first;
                for (std::int64_t p = rows.begin; p < rows.end; ++p)
                  for (std::int64_t q = columns.begin; q < columns.end; ++q) {
                    const T value = x[p * s.in_width + q];
                    if (!(value > best) && !(std::isnan(value) && !std::isnan(best))) continue;
                    best = value;
                    at = (p - rows.first) * s.kernel_width + q - columns.first;
                  }
                arguments.y[plane * out_plane + index] = best;
                arguments.positions[plane * out_plane + index] = static_cast<P>(at);
              });
}

template <class T, class P>
void max_pool2d_grad(const Pool2dSize& s, const MaxPool2dGradArguments<T, P>& arguments) {
  const std::int64_t in_plane = s.in_height * s.in_width;
  const std::int64_t out_plane = s.out_height * s.out_width;
  std::fill_n(arguments.dx, s.batch * s.channels * in_plane, T{0});
  for_windows(s, &Axis::window, arguments.threads,
              [&](std::int64_t plane, std::int64_t index, const Span& rows, const Span& columns) {
                const std::int64_t at = arguments.positions[plane * out_plane + index];
                const std::int64_t p = rows.first + at / s.kernel_width;
                const std::int64_t q = columns.first + at % s.kernel_width;
                arguments.dx[plane * in_plane + p * s.in_width + q] +=
                    arguments.dy[plane * out_plane + index];
              });
}

template <class T>
void avg_pool2d(const Pool2dSize& s, const AvgPool2dArguments<T>& arguments) {
  average(s, arguments, &Axis::window);
}
template <class T>
void avg_pool2d_grad(const Pool2dSize& s, const AvgPool2dArguments<T>& arguments) {
  average_grad(s, arguments, &Axis::window);
}
template <class T>
void adaptive_avg_pool2d(const Pool2dSize& s, const AvgPool2dArguments<T>& arguments) {
  average(s, arguments, &Axis::adaptive);
}
template <class T>
void adaptive_avg_pool2d_grad(const Pool2dSize& s, const AvgPool2dArguments<T>& arguments) {
  average_grad(s, arguments, &Axis::adaptive);
}

#define MUSTER_INSTANTIATE_MAX(T, P)                                            \
  template void max_pool2d(const Pool2dSize&, const MaxPool2dArguments<T, P>&); \
  template void max_pool2d_grad(const Pool2dSize&, const MaxPool2dGradArguments<T, P>&);
#define MUSTER_INSTANTIATE(T)                                                         \
  MUSTER_INSTANTIATE_MAX(T, std::uint8_t)                                             \
  MUSTER_INSTANTIATE_MAX(T, std::int32_t)                                             \
  template void avg_pool2d(const Pool2dSize&, const AvgPool2dArguments<T>&);          \
  template void avg_pool2d_grad(const Pool2dSize&, const AvgPool2dArguments<T>&);     \
  template void adaptive_avg_pool2d(const Pool2dSize&, const AvgPool2dArguments<T>&); \
  template void adaptive_avg_pool2d_grad(const Pool2dSize&, const AvgPool2dArguments<T>&);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)

}  // namespace muster::kernels
