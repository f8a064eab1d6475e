#include <algorithm>
#include <vector>

#include "muster/tensor/kernels/conv2d.h"
#include "muster/tensor/kernels/window.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

// Calls row(y_row, x_row, columns, x_offset) for each row of one output plane that the tap (p, q) of the
// kernel reads: output column j of row y_row meets input column j * stride + x_offset of row x_row.
template <class Row>
void for_rows(const Conv2dSize& s, std::int64_t p, std::int64_t q, const Row& row) {
  const std::int64_t offset_y = p * s.dilation_height - s.pad_top;
  const std::int64_t offset_x = q * s.dilation_width - s.pad_left;
  const Inside rows = inside(s.out_height, s.in_height, s.stride_height, offset_y);
  const Inside columns = inside(s.out_width, s.in_width, s.stride_width, offset_x);
  for (std::int64_t i = rows.begin; i < rows.end; ++i)
    row(i * s.out_width, (i * s.stride_height + offset_y) * s.in_width, columns, offset_x);
}

// Calls tap(weight_index, p, q) for each element of the kernel between output channel o and input channel c
// of its group.
template <class Tap>
void for_taps(const Conv2dSize& s, std::int64_t o, std::int64_t c, const Tap& tap) {
  const std::int64_t group_channels = s.in_channels / s.groups;
  std::int64_t index = (o * group_channels + c) * s.kernel_height * s.kernel_width;
  for (std::int64_t p = 0; p < s.kernel_height; ++p)
    for (std::int64_t q = 0; q < s.kernel_width; ++q) tap(index++, p, q);
}

struct Planes {
  explicit Planes(const Conv2dSize& s)
      : in(s.in_height * s.in_width),
        out(s.out_height * s.out_width),
        group_in(s.in_channels / s.groups),
        group_out(s.out_channels / s.groups) {}
  std::int64_t in, out;              // elements of one plane
  std::int64_t group_in, group_out;  // channels of one group
};

}  // namespace

template <class T>
void conv2d(const Conv2dSize& s, const Conv2dArguments<T>& arguments) {
  const Planes planes(s);
  parallel_for(s.batch * s.out_channels, 1, arguments.threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sum(static_cast<std::size_t>(planes.out));
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const std::int64_t o = plane % s.out_channels;
      const std::int64_t first =
          plane / s.out_channels * s.in_channels + o / planes.group_out * planes.group_in;
      const double bias = arguments.bias == nullptr ? 0.0 : static_cast<double>(arguments.bias[o]);
      std::fill(sum.begin(), sum.end(), bias);
      for (std::int64_t c = 0; c < planes.group_in; ++c) {
        const T* const x = arguments.x + (first + c) * planes.in;
        for_taps(s, o, c, [&](std::int64_t index, std::int64_t p, std::int64_t q) {
          const auto weight = static_cast<double>(arguments.weight[index]);
          for_rows(s, p, q, [&](std::int64_t y_row, std::int64_t x_row, Inside columns, std::int64_t offset) {
            double* const to = sum.data() + y_row;
            for (std::int64_t j = columns.begin; j < columns.end; ++j)
              to[j] += weight * static_cast<double>(x[x_row + j * s.stride_width + offset]);
          });
        });
      }
      std::transform(sum.begin(), sum.end(), arguments.y + plane * planes.out,
                     [&](double value) { return static_cast<T>(arguments.relu && value < 0 ? 0.0 : value); });
    }
  });
}

template <class T>
void conv2d_grad_input(const Conv2dSize& s, const Conv2dGradInputArguments<T>& arguments) {
  const Planes planes(s);
  parallel_for(s.batch * s.in_channels, 1, arguments.threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sum(static_cast<std::size_t>(planes.in));
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const std::int64_t c = plane % s.in_channels;
      const std::int64_t first = c / planes.group_in * planes.group_out;
      std::fill(sum.begin(), sum.end(), 0.0);
      for (std::int64_t o = first; o < first + planes.group_out; ++o) {
        const T* const dy = arguments.dy + (plane / s.in_channels * s.out_channels + o) * planes.out;
        for_taps(s, o, c % planes.group_in, [&](std::int64_t index, std::int64_t p, std::int64_t q) {
          const auto weight = static_cast<double>(arguments.weight[index]);
          for_rows(s, p, q, [&](std::int64_t y_row, std::int64_t x_row, Inside columns, std::int64_t offset) {
            double* const to = sum.data() + x_row + offset;
            for (std::int64_t j = columns.begin; j < columns.end; ++j)
              to[j * s.stride_width] += weight * static_cast<double>(dy[y_row + j]);
          });
        });
      }
      std::transform(sum.begin(), sum.end(), arguments.dx + plane * planes.in,
                     [](double value) { return static_cast<T>(value); });
    }
  });
}

template <class T>
void conv2d_grad_weight(const Conv2dSize& s, const Conv2dGradWeightArguments<T>& arguments) {
  const Planes planes(s);
  parallel_for(s.out_channels, 1, arguments.threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      const std::int64_t first = o / planes.group_out * planes.group_in;
      for (std::int64_t c = 0; c < planes.group_in; ++c)
        for_taps(s, o, c, [&](std::int64_t index, std::int64_t p, std::int64_t q) {
          double sum = 0;
          for (std::int64_t n = 0; n < s.batch; ++n) {
            const T* const x = arguments.x + (n * s.in_channels + first + c) * planes.in;
            const T* const dy = arguments.dy + (n * s.out_channels + o) * planes.out;
            for_rows(s, p, q,
                     [&](std::int64_t y_row, std::int64_t x_row, Inside columns, std::int64_t offset) {
                       for (std::int64_t j = columns.begin; j < columns.end; ++j)
                         sum += static_cast<double>(dy[y_row + j]) *
                                static_cast<double>(x[x_row + j * s.stride_width + offset]);
                     });
          }
          arguments.dweight[index] = static_cast<T>(sum);
        });
    }
  });
}

template <class T>
void channel_sum(const T* x, T* out, std::int64_t batch, std::int64_t channels, std::int64_t inner) {
  for (std::int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t i = 0; i < inner; ++i) sum += static_cast<double>(x[(n * channels + c) * inner + i]);
    out[c] = static_cast<T>(sum);
  }
}

#define MUSTER_INSTANTIATE(T)                                                               \
  template void conv2d(const Conv2dSize&, const Conv2dArguments<T>&);                       \
  template void conv2d_grad_input(const Conv2dSize&, const Conv2dGradInputArguments<T>&);   \
  template void conv2d_grad_weight(const Conv2dSize&, const Conv2dGradWeightArguments<T>&); \
  template void channel_sum(const T*, T*, std::int64_t, std::int64_t, std::int64_t);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)

}  // namespace muster::kernels
