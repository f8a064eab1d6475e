// conv2d and its gradient for x, which is a convolution too: of dy, with the kernel turned around.
#include <algorithm>
#include <utility>
#include <vector>

#include "muster/tensor/batch_blocked/axis.h"
#include "muster/tensor/batch_blocked/primitives.h"
#include "muster/tensor/parallel.h"

namespace muster::batch_blocked {
namespace {

using kernels::Conv2dSize;

// Sums over `in` of weight[out * out_step + in * in_step + tap].
struct Channels {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t in_step = 0;
  std::int64_t out_step = 0;
};

// Neighbouring pixels of a row that meet the same taps.
struct Segment {
  std::int64_t first = 0;
  std::int64_t columns = 0;
  Range taps;
};

// The outputs of one pair of axes.
struct Part {
  Axis rows;
  Axis columns;
  std::vector<Segment> segments = {};  // of every row
  std::int64_t weight_offset = 0;      // among the packed weights
};

std::vector<Segment> segments_of(const Axis& axis, std::int64_t columns_max) {
  std::vector<Segment> segments;
  for (std::int64_t t = 0; t < axis.count;) {
    const Range taps = axis.taps_inside(t);
    std::int64_t end = t + 1;
    while (end < axis.count && axis.taps_inside(end) == taps) ++end;
    const Pieces pieces(end - t, columns_max);
    for (std::int64_t piece = 0; piece < pieces.count(); ++piece)
      segments.push_back({t + pieces[piece].begin, pieces[piece].size(), taps});
    t = end;
  }
  return segments;
}

struct Plane {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t floats() const { return height * width * samples; }
};

struct Problem {
  std::int64_t batch = 0;
  Channels channels;
  Plane in;
  Plane out;
  std::int64_t kernel_width = 1;
  std::vector<Part> parts = {};
  bool bias = false;
  bool relu = false;
};

class Convolution final : public Primitive {
 public:
  Convolution(const Simd& simd, Problem problem, std::vector<FormatPtr> inputs);
  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte* scratch,
           int threads) const override;

 private:
  // The addresses of one run.
  struct Run {
    const float* x = nullptr;
    const float* weight = nullptr;  // packed
    const float* start = nullptr;  // of whole blocks, then of the last: bias where there is a sample; or null
    float* y = nullptr;
  };
  struct Row {
    std::size_t part = 0;
    std::int64_t t = 0;
  };

  std::int64_t blocks() const { return blocks_of(problem_.batch); }
  std::int64_t start_floats() const { return problem_.bias ? problem_.channels.out * samples : 0; }
  void pack(const float* weight, float* packed) const;
  void spread(const float* bias, float* start) const;
  ConvTile steps_of(const Part& part, const Range& tap_rows, const Range& tap_columns,
                    std::int64_t outs) const;
  void compute(const Run& run, std::int64_t block, const Row& row) const;

  const Simd& simd_;
  Problem problem_;
  Pieces outs_;            // groups of output channels
  std::vector<Row> rows_;  // of all parts
  std::int64_t packed_floats_ = 0;
  std::int64_t operations_ = 0;
};

Convolution::Convolution(const Simd& simd, Problem problem, std::vector<FormatPtr> inputs)
    : simd_(simd), problem_(std::move(problem)), outs_(problem_.channels.out, simd.conv_outs_max) {
  const Channels& channels = problem_.channels;
  for (std::size_t i = 0; i < problem_.parts.size(); ++i) {
    Part& part = problem_.parts[i];
    part.segments = segments_of(part.columns, simd.conv_columns_max);
    part.weight_offset = packed_floats_;
    const std::int64_t weights = channels.in * channels.out * part.rows.taps * part.columns.taps;
    packed_floats_ += weights;
    operations_ += weights * part.rows.count * part.columns.count * problem_.batch;
    for (std::int64_t t = 0; t < part.rows.count; ++t) rows_.push_back({i, t});
  }
  scratch_bytes = static_cast<std::size_t>(packed_floats_ + 2 * start_floats()) * sizeof(float);
  input_formats = std::move(inputs);
  output_formats = {
      batch_blocked_format(problem_.batch, channels.out * problem_.out.height * problem_.out.width)};
}

// By part and group of output channels: for each input channel and tap the weights of the group.
void Convolution::pack(const float* weight, float* packed) const {
  const Channels& channels = problem_.channels;
  for (const Part& part : problem_.parts)
    for (std::int64_t group = 0; group < outs_.count(); ++group) {
      const Range outs = outs_[group];
      for (std::int64_t c = 0; c < channels.in; ++c)
        for (std::int64_t p = 0; p < part.rows.taps; ++p)
          for (std::int64_t q = 0; q < part.columns.taps; ++q) {
            const std::int64_t row = part.rows.tap_first + p * part.rows.tap_step;
            const std::int64_t column = part.columns.tap_first + q * part.columns.tap_step;
            const float* const from = weight + c * channels.in_step + row * problem_.kernel_width + column;
            for (std::int64_t o = outs.begin; o < outs.end; ++o) *packed++ = from[o * channels.out_step];
          }
    }
}

// Samples that fill up the last block stay zeros.
void Convolution::spread(const float* bias, float* start) const {
  const std::int64_t valid = problem_.batch - (blocks() - 1) * samples;
  for (const std::int64_t lanes : {samples, valid})
    for (std::int64_t o = 0; o < problem_.channels.out; ++o, start += samples) {
      std::fill_n(start, lanes, bias[o]);
      std::fill_n(start + lanes, samples - lanes, 0.0F);
    }
}

// Everything of a tile but the addresses.
ConvTile Convolution::steps_of(const Part& part, const Range& tap_rows, const Range& tap_columns,
                               std::int64_t outs) const {
  const std::int64_t taps = part.rows.taps * part.columns.taps;
  ConvTile tile{.x_channel = problem_.in.floats(),
                .x_tap_row = part.rows.in_tap * problem_.in.width * samples,
                .x_tap_column = part.columns.in_tap * samples,
                .x_column = part.columns.in_step * samples,
                .weight_channel = taps * outs,
                .weight_tap_row = part.columns.taps * outs,
                .channels = problem_.channels.in,
                .tap_rows = tap_rows.size(),
                .tap_columns = tap_columns.size(),
                .relu = problem_.relu,
                .y_channel = problem_.out.floats(),
                .y_column = part.columns.out_step * samples};
  if (tile.tap_rows == 0 || tile.tap_columns == 0) {
    tile.channels = 0;
  } else if (taps == 1) {  // the innermost loop, over the taps of a row, takes the channels instead
    std::swap(tile.channels, tile.tap_columns);
    tile.x_tap_column = tile.x_channel;
  }
  return tile;
}

void Convolution::compute(const Run& run, std::int64_t block, const Row& row) const {
  const Channels& channels = problem_.channels;
  const Part& part = problem_.parts[row.part];
  const Range tap_rows = part.rows.taps_inside(row.t);
  const std::int64_t taps = part.rows.taps * part.columns.taps;
  const std::int64_t x_row = part.rows.input(row.t, tap_rows.begin) * problem_.in.width;
  const std::int64_t y_row = (part.rows.out_first + row.t * part.rows.out_step) * problem_.out.width;
  const float* const x = run.x + block * channels.in * problem_.in.floats();
  float* const y = run.y + block * channels.out * problem_.out.floats();
  const bool last = block + 1 == blocks();
  for (std::int64_t group = 0; group < outs_.count(); ++group) {
    const auto [first, end] = outs_[group];
    const std::int64_t outs = end - first;
    const float* const weight = run.weight + part.weight_offset + first * channels.in * taps;
    for (const Segment& segment : part.segments) {
      ConvTile tile = steps_of(part, tap_rows, segment.taps, outs);
      const std::int64_t x_column = part.columns.input(segment.first, segment.taps.begin);
      const std::int64_t y_column = part.columns.out_first + segment.first * part.columns.out_step;
      if (tile.channels > 0) tile.x = x + (x_row + x_column) * samples;
      tile.weight = weight + (tap_rows.begin * part.columns.taps + segment.taps.begin) * outs;
      if (run.start != nullptr) tile.start = run.start + (last ? start_floats() : 0) + first * samples;
      tile.y = y + first * problem_.out.floats() + (y_row + y_column) * samples;
      simd_.conv_tiles[(outs - 1) * simd_.conv_columns_max + segment.columns - 1](tile);
    }
  }
}

bool Convolution::run(std::byte* const* inputs, std::byte* const* outputs, std::byte* scratch,
                      int threads) const {
  auto* const packed = reinterpret_cast<float*>(scratch);
  pack(reinterpret_cast<const float*>(inputs[1]), packed);
  float* const start = packed + packed_floats_;
  if (problem_.bias) spread(reinterpret_cast<const float*>(inputs[2]), start);
  const Run run{.x = reinterpret_cast<const float*>(inputs[0]),
                .weight = packed,
                .start = problem_.bias ? start : nullptr,
                .y = reinterpret_cast<float*>(outputs[0])};
  const auto rows = static_cast<std::int64_t>(rows_.size());
  parallel_for(blocks() * rows, 1, threads_for(operations_, threads),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i)
                   compute(run, i / rows, rows_[static_cast<std::size_t>(i % rows)]);
               });
  return true;
}

PrimitivePtr make_forward(const Simd& simd, const Conv2dSize& s, bool bias, bool relu) {
  const std::int64_t taps = s.kernel_height * s.kernel_width;
  Problem problem{.batch = s.batch,
                  .channels = {s.in_channels, s.out_channels, taps, s.in_channels * taps},
                  .in = {s.in_height, s.in_width},
                  .out = {s.out_height, s.out_width},
                  .kernel_width = s.kernel_width,
                  .bias = bias,
                  .relu = relu};
  problem.parts.push_back({forward_axis(height_of(s)), forward_axis(width_of(s))});
  std::vector<FormatPtr> inputs{x_format(s), nullptr};
  if (bias) inputs.emplace_back();
  return std::make_shared<Convolution>(simd, std::move(problem), std::move(inputs));
}

PrimitivePtr make_grad_input(const Simd& simd, const Conv2dSize& s) {
  const std::int64_t taps = s.kernel_height * s.kernel_width;
  Problem problem{.batch = s.batch,
                  .channels = {s.out_channels, s.in_channels, s.in_channels * taps, taps},
                  .in = {s.out_height, s.out_width},
                  .out = {s.in_height, s.in_width},
                  .kernel_width = s.kernel_width};
  for (const Axis& rows : backward_axes(height_of(s)))
    for (const Axis& columns : backward_axes(width_of(s))) problem.parts.push_back({rows, columns});
  return std::make_shared<Convolution>(simd, std::move(problem),
                                       std::vector<FormatPtr>{y_format(s), nullptr});
}

}  // namespace

PrimitivePtr make_conv2d(const Simd& simd, const Conv2dSize& size, Direction direction, bool bias,
                         bool relu) {
  if (size.groups != 1) return nullptr;
  switch (direction) {
    case Direction::forward:
      return make_forward(simd, size, bias, relu);
    case Direction::grad_input:
      return make_grad_input(simd, size);
    case Direction::grad_weight:
      break;
  }
  return make_conv2d_grad_weight(simd, size);
}

}  // namespace muster::batch_blocked
