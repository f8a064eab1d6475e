#include <algorithm>
#include <cmath>

#include "muster/tensor/kernels/pool2d.h"
#include "muster/tensor/kernels/window.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

using Rule = Window (WindowAxis::*)(std::int64_t) const;

// Calls use(plane, output index within the plane, rows, columns) for each window.
template <class Use>
void for_windows(const Pool2dSize& s, Rule window, int threads, const Use& use) {
  const WindowAxis height = height_of(s);
  const WindowAxis width = width_of(s);
  parallel_for(s.batch * s.channels, 1, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane)
      for (std::int64_t i = 0; i < s.out_height; ++i)
        for (std::int64_t j = 0; j < s.out_width; ++j)
          use(plane, i * s.out_width + j, (height.*window)(i), (width.*window)(j));
  });
}

template <class T>
void average(const Pool2dSize& s, const AvgPool2dArguments<T>& arguments, Rule window) {
  const std::int64_t in_plane = s.in_height * s.in_width;
  const std::int64_t out_plane = s.out_height * s.out_width;
  for_windows(s, window, arguments.threads,
              [&](std::int64_t plane, std::int64_t index, const Window& rows, const Window& columns) {
                const T* const x = arguments.x + plane * in_plane;
                double sum = 0;
                for (std::int64_t p = rows.begin; p < rows.end; ++p)
                  for (std::int64_t q = columns.begin; q < columns.end; ++q)
                    sum += static_cast<double>(x[p * s.in_width + q]);
                const std::int64_t pixels = pixels_of(s, rows, columns);
                arguments.y[plane * out_plane + index] = static_cast<T>(sum / static_cast<double>(pixels));
              });
}

template <class T>
void average_grad(const Pool2dSize& s, const AvgPool2dArguments<T>& arguments, Rule window) {
  const std::int64_t in_plane = s.in_height * s.in_width;
  const std::int64_t out_plane = s.out_height * s.out_width;
  std::fill_n(arguments.y, s.batch * s.channels * in_plane, T{0});
  for_windows(s, window, arguments.threads,
              [&](std::int64_t plane, std::int64_t index, const Window& rows, const Window& columns) {
                T* const dx = arguments.y + plane * in_plane;
                const std::int64_t pixels = pixels_of(s, rows, columns);
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
  for_windows(s, &WindowAxis::window, arguments.threads,
              [&](std::int64_t plane, std::int64_t index, const Window& rows, const Window& columns) {
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
  for_windows(s, &WindowAxis::window, arguments.threads,
              [&](std::int64_t plane, std::int64_t index, const Window& rows, const Window& columns) {
                const std::int64_t at = arguments.positions[plane * out_plane + index];
                const std::int64_t p = rows.first + at / s.kernel_width;
                const std::int64_t q = columns.first + at % s.kernel_width;
                arguments.dx[plane * in_plane + p * s.in_width + q] +=
                    arguments.dy[plane * out_plane + index];
              });
}

template <class T>
void avg_pool2d(const Pool2dSize& s, const AvgPool2dArguments<T>& arguments) {
  average(s, arguments, &WindowAxis::window);
}
template <class T>
void avg_pool2d_grad(const Pool2dSize& s, const AvgPool2dArguments<T>& arguments) {
  average_grad(s, arguments, &WindowAxis::window);
}
template <class T>
void adaptive_avg_pool2d(const Pool2dSize& s, const AvgPool2dArguments<T>& arguments) {
  average(s, arguments, &WindowAxis::adaptive);
}
template <class T>
void adaptive_avg_pool2d_grad(const Pool2dSize& s, const AvgPool2dArguments<T>& arguments) {
  average_grad(s, arguments, &WindowAxis::adaptive);
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
