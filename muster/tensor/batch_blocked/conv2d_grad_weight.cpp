// The gradient of conv2d's weight.
#include <algorithm>
#include <utility>
#include <vector>

#include "muster/tensor/batch_blocked/axis.h"
#include "muster/tensor/batch_blocked/primitives.h"
#include "muster/tensor/kernels/window.h"
#include "muster/tensor/parallel.h"

namespace muster::batch_blocked {
namespace {

using kernels::Conv2dSize;
using kernels::Inside;
using kernels::WindowAxis;

constexpr std::int64_t band_bytes = 36 << 10;  // of x and dy, so that they stay in L1 for all taps
// Sums are split by samples until there are about as many tasks: a number that no machine's threads change.
constexpr std::int64_t tasks_wanted = 16;

// The rows or columns of dy whose input lies in the image for all taps of `range`.
Inside inside_of(const WindowAxis& axis, const Range& taps) {
  const auto of = [&](std::int64_t tap) {
    return kernels::inside(axis.out, axis.in, axis.stride, tap * axis.dilation - axis.pad_before);
  };
  const Inside first = of(taps.begin);
  const Inside last = of(taps.end - 1);
  const std::int64_t begin = std::max(first.begin, last.begin);
  return {begin, std::max(begin, std::min(first.end, last.end))};
}

class ConvolutionGradWeight final : public Primitive {
 public:
  ConvolutionGradWeight(const Simd& simd, const Conv2dSize& size);
  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte* scratch,
           int threads) const override;

 private:
  // The sums of some blocks of samples, for a group of output channels and one input channel.
  struct Task {
    const float* x = nullptr;
    const float* dy = nullptr;
    float* dweight = nullptr;
    Range blocks;
    Range outs;
    std::int64_t channel = 0;
  };

  std::int64_t taps() const { return size_.kernel_height * size_.kernel_width; }
  std::int64_t weights() const { return size_.out_channels * size_.in_channels * taps(); }
  void compute(const Task& task, std::vector<float>& sums) const;
  void add_band(const Task& task, std::int64_t block, const Range& band, float* sums) const;

  const Simd& simd_;
  Conv2dSize size_;
  WindowAxis height_;
  WindowAxis width_;
  Pieces outs_;                  // groups of output channels
  Pieces tap_columns_;           // groups of taps of a row
  std::vector<Inside> rows_;     // of dy, by row of the kernel
  std::vector<Inside> columns_;  // of dy, by group of taps
  std::vector<Range> blocks_;    // groups of samples
};

std::vector<Range> groups_of(std::int64_t blocks, std::int64_t tasks) {
  const std::int64_t wanted =
      std::clamp<std::int64_t>(tasks_wanted / std::max<std::int64_t>(tasks, 1), 1, blocks);
  const Pieces pieces(blocks, (blocks + wanted - 1) / wanted);
  std::vector<Range> groups;
  for (std::int64_t piece = 0; piece < pieces.count(); ++piece) groups.push_back(pieces[piece]);
  return groups;
}

// As many output channels as the sums of the widest group of taps leave room for.
std::int64_t outs_max(const Simd& simd, std::int64_t kernel_width) {
  const std::int64_t groups = Pieces(kernel_width, simd.weight_taps_max).count();
  const std::int64_t taps = (kernel_width + groups - 1) / groups;
  return std::min<std::int64_t>(simd.weight_outs_max, simd.weight_sums_max / taps);
}

ConvolutionGradWeight::ConvolutionGradWeight(const Simd& simd, const Conv2dSize& size)
    : simd_(simd),
      size_(size),
      height_(height_of(size)),
      width_(width_of(size)),
      outs_(size.out_channels, outs_max(simd, size.kernel_width)),
      tap_columns_(size.kernel_width, simd.weight_taps_max),
      blocks_(groups_of(blocks_of(size.batch), outs_.count() * size.in_channels)) {
  for (std::int64_t p = 0; p < size.kernel_height; ++p) rows_.push_back(inside_of(height_, {p, p + 1}));
  for (std::int64_t group = 0; group < tap_columns_.count(); ++group)
    columns_.push_back(inside_of(width_, tap_columns_[group]));
  if (blocks_.size() > 1)
    scratch_bytes = static_cast<std::size_t>(weights()) * blocks_.size() * sizeof(float);
  input_formats = {x_format(size), y_format(size)};
  output_formats = {nullptr};
}

// Rows `band` of dy, of one block of samples.
void ConvolutionGradWeight::add_band(const Task& task, std::int64_t block, const Range& band,
                                     float* sums) const {
  const std::int64_t in_plane = size_.in_height * size_.in_width * samples;
  const std::int64_t out_plane = size_.out_height * size_.out_width * samples;
  const float* const x = task.x + (block * size_.in_channels + task.channel) * in_plane;
  const float* const dy = task.dy + (block * size_.out_channels + task.outs.begin) * out_plane;
  for (std::int64_t p = 0; p < size_.kernel_height; ++p) {
    const Inside& rows = rows_[static_cast<std::size_t>(p)];
    const std::int64_t begin = std::max(rows.begin, band.begin);
    const std::int64_t end = std::min(rows.end, band.end);
    if (begin >= end) continue;
    const std::int64_t x_row = begin * height_.stride + p * height_.dilation - height_.pad_before;
    for (std::int64_t group = 0; group < tap_columns_.count(); ++group) {
      const Range columns = tap_columns_[group];
      const Inside& inside = columns_[static_cast<std::size_t>(group)];
      const WeightTile tile{.x = x + x_row * size_.in_width * samples,
                            .x_row = height_.stride * size_.in_width * samples,
                            .x_columns = size_.in_width,
                            .dy = dy + begin * size_.out_width * samples,
                            .dy_row = size_.out_width * samples,
                            .dy_channel = out_plane,
                            .rows = end - begin,
                            .columns = size_.out_width,
                            .first = columns.begin * width_.dilation - width_.pad_before,
                            .stride = width_.stride,
                            .dilation = width_.dilation,
                            .inside_begin = inside.begin,
                            .inside_end = inside.end,
                            .sums = sums + (p * size_.kernel_width + columns.begin) * samples,
                            .sums_out = taps() * samples};
      simd_.weight_tiles[(task.outs.size() - 1) * simd_.weight_taps_max + columns.size() - 1](tile);
    }
  }
}

void ConvolutionGradWeight::compute(const Task& task, std::vector<float>& sums) const {
  const std::int64_t outs = task.outs.size();
  sums.assign(static_cast<std::size_t>(outs * taps() * samples), 0.0F);
  const std::int64_t row_bytes = (outs * size_.out_width + height_.stride * size_.in_width) * samples *
                                 static_cast<std::int64_t>(sizeof(float));
  const Pieces bands(size_.out_height, std::max<std::int64_t>(band_bytes / row_bytes, 1));
  for (std::int64_t block = task.blocks.begin; block < task.blocks.end; ++block)
    for (std::int64_t band = 0; band < bands.count(); ++band) add_band(task, block, bands[band], sums.data());
  for (std::int64_t o = 0; o < outs; ++o)
    simd_.totals(sums.data() + o * taps() * samples, taps(),
                 task.dweight + ((task.outs.begin + o) * size_.in_channels + task.channel) * taps());
}

bool ConvolutionGradWeight::run(std::byte* const* inputs, std::byte* const* outputs, std::byte* scratch,
                                int threads) const {
  auto* const dweight = reinterpret_cast<float*>(outputs[0]);
  float* const partial = blocks_.size() > 1 ? reinterpret_cast<float*>(scratch) : dweight;
  const std::int64_t tasks = outs_.count() * size_.in_channels;
  const auto groups = static_cast<std::int64_t>(blocks_.size());
  const std::int64_t operations = weights() * size_.batch * size_.out_height * size_.out_width;
  parallel_for(groups * tasks, 1, threads_for(operations, threads),
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<float> sums;
                 for (std::int64_t i = begin; i < end; ++i)
                   compute({.x = reinterpret_cast<const float*>(inputs[0]),
                            .dy = reinterpret_cast<const float*>(inputs[1]),
                            .dweight = partial + i / tasks * weights(),
                            .blocks = blocks_[static_cast<std::size_t>(i / tasks)],
                            .outs = outs_[i % tasks / size_.in_channels],
                            .channel = i % size_.in_channels},
                           sums);
               });
  if (groups == 1) return true;
  std::copy_n(partial, weights(), dweight);
  for (std::int64_t group = 1; group < groups; ++group)
    for (std::int64_t i = 0; i < weights(); ++i) dweight[i] += partial[group * weights() + i];
  return true;
}

}  // namespace

PrimitivePtr make_conv2d_grad_weight(const Simd& simd, const Conv2dSize& size) {
  return std::make_shared<ConvolutionGradWeight>(simd, size);
}

}  // namespace muster::batch_blocked
