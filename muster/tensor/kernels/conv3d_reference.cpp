#include <algorithm>
#include <vector>

#include "muster/tensor/kernels/conv3d.h"
#include "muster/tensor/kernels/window.h"
#include "muster/tensor/parallel.h"

namespace muster::kernels {
namespace {

// How many elements a volume has, or a kernel places.
std::int64_t volume(const Conv3dSize::Axes& axes) { return axes[0] * axes[1] * axes[2]; }

// Calls line(y, x, count) for each line of one output volume that the `place` of the kernel reads: the
// outputs y, y + 1, ... meet the inputs x, x + stride, ... of the line.
template <class Line>
void for_lines(const Conv3dSize& s, const Conv3dSize::Axes& place, const Line& line) {
  Conv3dSize::Axes offset;
  std::array<Inside, 3> met;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    offset[axis] = place[axis] * s.dilation[axis] - s.pad_before[axis];
    met[axis] = inside(s.out[axis], s.in[axis], s.stride[axis], offset[axis]);
  }
  const auto& [depths, rows, columns] = met;
  for (std::int64_t d = depths.begin; d < depths.end; ++d)
    for (std::int64_t i = rows.begin; i < rows.end; ++i)
      line((d * s.out[1] + i) * s.out[2] + columns.begin,
           ((d * s.stride[0] + offset[0]) * s.in[1] + i * s.stride[1] + offset[1]) * s.in[2] +
               columns.begin * s.stride[2] + offset[2],
           columns.end - columns.begin);
}

// Calls tap(weight_index, place) for each element of the kernel between output channel o and input channel c
// of its group.
template <class Tap>
void for_taps(const Conv3dSize& s, std::int64_t o, std::int64_t c, const Tap& tap) {
  std::int64_t index = (o * (s.in_channels / s.groups) + c) * volume(s.kernel);
  for (std::int64_t p = 0; p < s.kernel[0]; ++p)
    for (std::int64_t q = 0; q < s.kernel[1]; ++q)
      for (std::int64_t r = 0; r < s.kernel[2]; ++r) tap(index++, Conv3dSize::Axes{p, q, r});
}

}  // namespace

template <class T>
void conv3d(const Conv3dSize& s, const T* x, const T* weight, T* y, int threads) {
  const std::int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
  parallel_for(s.batch * s.out_channels, 1, threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sum(static_cast<std::size_t>(volume(s.out)));
    for (std::int64_t of = begin; of < end; ++of) {
      const std::int64_t o = of % s.out_channels;
      const std::int64_t first = of / s.out_channels * s.in_channels + o / group_out * group_in;
      std::fill(sum.begin(), sum.end(), 0.0);
      for (std::int64_t c = 0; c < group_in; ++c)
        for_taps(s, o, c, [&](std::int64_t index, const Conv3dSize::Axes& place) {
          const auto factor = static_cast<double>(weight[index]);
          for_lines(s, place, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
            const T* const read = x + (first + c) * volume(s.in) + from;
            double* const written = sum.data() + to;
            for (std::int64_t j = 0; j < count; ++j)
              written[j] += factor * static_cast<double>(read[j * s.stride[2]]);
          });
        });
      std::transform(sum.begin(), sum.end(), y + of * volume(s.out),
                     [](double value) { return static_cast<T>(value); });
    }
  });
}

template <class T>
void conv3d_grad_input(const Conv3dSize& s, const T* dy, const T* weight, T* dx, int threads) {
  const std::int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
  parallel_for(s.batch * s.in_channels, 1, threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sum(static_cast<std::size_t>(volume(s.in)));
    for (std::int64_t of = begin; of < end; ++of) {
      const std::int64_t c = of % s.in_channels;
      const std::int64_t first = c / group_in * group_out;
      std::fill(sum.begin(), sum.end(), 0.0);
      for (std::int64_t o = first; o < first + group_out; ++o)
        for_taps(s, o, c % group_in, [&](std::int64_t index, const Conv3dSize::Axes& place) {
          const auto factor = static_cast<double>(weight[index]);
          for_lines(s, place, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
            const T* const read = dy + (of / s.in_channels * s.out_channels + o) * volume(s.out) + from;
            double* const written = sum.data() + to;
            for (std::int64_t j = 0; j < count; ++j)
              written[j * s.stride[2]] += factor * static_cast<double>(read[j]);
          });
        });
      std::transform(sum.begin(), sum.end(), dx + of * volume(s.in),
                     [](double value) { return static_cast<T>(value); });
    }
  });
}

template <class T>
void conv3d_grad_weight(const Conv3dSize& s, const T* x, const T* dy, T* dweight, int threads) {
  const std::int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
  parallel_for(s.out_channels, 1, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o)
      for (std::int64_t c = 0; c < group_in; ++c)
        for_taps(s, o, c, [&](std::int64_t index, const Conv3dSize::Axes& place) {
          double sum = 0;
          for (std::int64_t n = 0; n < s.batch; ++n) {
            const T* const in = x + (n * s.in_channels + o / group_out * group_in + c) * volume(s.in);
            const T* const out = dy + (n * s.out_channels + o) * volume(s.out);
            for_lines(s, place, [&](std::int64_t of_y, std::int64_t of_x, std::int64_t count) {
              for (std::int64_t j = 0; j < count; ++j)
                sum += static_cast<double>(out[of_y + j]) * static_cast<double>(in[of_x + j * s.stride[2]]);
            });
          }
          dweight[index] = static_cast<T>(sum);
        });
  });
}

#define MUSTER_INSTANTIATE(T)                                                      \
  template void conv3d(const Conv3dSize&, const T*, const T*, T*, int);            \
  template void conv3d_grad_input(const Conv3dSize&, const T*, const T*, T*, int); \
  template void conv3d_grad_weight(const Conv3dSize&, const T*, const T*, T*, int);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)

}  // namespace muster::kernels
