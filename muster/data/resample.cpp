#include "muster/data/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "muster/data/blend.h"
#include "muster/data/resample_axis.h"

namespace muster::data {
namespace {

// For each value of a new line, in the order in which it is stored, the places in an old line and weights.
// The places count values, not pixels.
struct LineTaps {
  std::int64_t taps = 1;
  std::vector<std::int32_t> places;  // [k * values + j]
  std::vector<float> weights;
  std::size_t values = 0;
};

LineTaps line_taps(const AxisTaps& axis, std::int64_t channels, Channels layout) {
  const auto pixels = static_cast<std::int64_t>(axis.places.size()) / axis.taps;
  LineTaps line{axis.taps, {}, {}, static_cast<std::size_t>(pixels * channels)};
  line.places.resize(static_cast<std::size_t>(axis.taps) * line.values);
  line.weights.resize(line.places.size());
  for (std::int64_t x = 0; x < pixels; ++x)
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto j = static_cast<std::size_t>(layout == Channels::last ? x * channels + c : c * pixels + x);
      for (std::int64_t k = 0; k < axis.taps; ++k) {
        const auto from = static_cast<std::size_t>(x * axis.taps + k);
        const auto to = static_cast<std::size_t>(k) * line.values + j;
        line.places[to] = static_cast<std::int32_t>(axis.places[from] * channels + c);
        line.weights[to] = axis.weights[from];
      }
    }
  return line;
}

// Lines of the image at the new width, made when they are first needed. The lines needed at one time lie
// within `held` of each other, so that a line's slot is its number modulo `held`.
template <class Stored, class Make>
class Lines {
 public:
  Lines(std::int64_t held, std::size_t values, Make make)
      : numbers_(static_cast<std::size_t>(held), -1),
        values_(values),
        stored_(numbers_.size() * values),
        make_(make) {}

  const Stored* line(std::int64_t number) {
    const std::size_t slot = static_cast<std::size_t>(number) % numbers_.size();
    Stored* to = stored_.data() + slot * values_;
    if (numbers_[slot] != number) {
      numbers_[slot] = number;
      make_(number, to);
    }
    return to;
  }

 private:
  std::vector<std::int64_t> numbers_;
  const std::size_t values_;
  std::vector<Stored> stored_;
  const Make make_;
};

// Where the values of new line y go: one run for (H, W, C), one a channel for (C, H, W).
template <class Value, class Write>
void write_line(Size size, std::int64_t channels, Channels layout, std::int64_t y, Value* out, Write write) {
  const auto width = static_cast<std::size_t>(size.width);
  if (layout == Channels::last)
    return write(std::size_t{0}, width * static_cast<std::size_t>(channels),
                 out + static_cast<std::size_t>(y * channels) * width);
  for (std::int64_t c = 0; c < channels; ++c)
    write(static_cast<std::size_t>(c) * width, width,
          out + static_cast<std::size_t>(c * size.height + y) * width);
}

bool shrinks(Size from, Size to) { return to.height <= from.height && to.width <= from.width; }

// What is summed up of values: float64 keeps its digits.
template <class Value>
using Sum = std::conditional_t<std::is_same_v<Value, double>, double, float>;

template <class Value>
Value rounded(Sum<Value> value, bool halves_up) {
  if constexpr (std::is_floating_point_v<Value>) {
    return value;
  } else {
    using Limits = std::numeric_limits<Value>;
    const float whole = halves_up ? std::floor(value + 0.5f) : std::nearbyint(value);
    return static_cast<Value>(
        std::clamp(whole, static_cast<float>(Limits::min()), static_cast<float>(Limits::max())));
  }
}

template <class Value>
void resample_nearest(const ImageView<Value>& image, Size size, Channels layout, Value* out) {
  const AxisTaps rows = axis_taps({image.size.height, size.height}, Interpolation::nearest, false);
  const LineTaps line = line_taps(axis_taps({image.size.width, size.width}, Interpolation::nearest, false),
                                  image.channels, layout);
  for (std::int64_t y = 0; y < size.height; ++y) {
    const Value* from = image.line(rows.places[static_cast<std::size_t>(y)]);
    write_line(size, image.channels, layout, y, out, [&](std::size_t begin, std::size_t count, Value* to) {
      for (std::size_t j = 0; j < count; ++j) to[j] = from[line.places[begin + j]];
    });
  }
}

// Weights as OpenCV has them for bytes: with 11 bits.
void cut_weights(AxisTaps& axis) {
  constexpr float one = 1 << 11;
  for (float& weight : axis.weights) weight = std::nearbyint(weight * one) / one;
}

// First along the lines, then across them, in float32 or float64.
template <class Value>
void resample_weighted(const ImageView<Value>& image, Size size, Interpolation interpolation, Channels layout,
                       Value* out) {
  const bool smaller = shrinks(image.size, size);
  AxisTaps rows = axis_taps({image.size.height, size.height}, interpolation, smaller);
  AxisTaps columns = axis_taps({image.size.width, size.width}, interpolation, smaller);
  if (std::is_same_v<Value, std::uint8_t> && interpolation == Interpolation::cubic)
    for (AxisTaps* axis : {&rows, &columns}) cut_weights(*axis);
  const bool is_half = image.size.height == 2 * size.height && image.size.width == 2 * size.width;
  const LineTaps line = line_taps(columns, image.channels, layout);
  // As OpenCV rounds: halves up where four pixels become one, and behind the last eight values that its
  // vectors take of a line; else to the even number.
  std::size_t even = line.values;
  if (interpolation == Interpolation::area && is_half) even = 0;
  if (interpolation == Interpolation::cubic) even -= even % 8;
  Lines<Sum<Value>, std::function<void(std::int64_t, Sum<Value>*)>> lines(
      rows.taps, line.values, [&](std::int64_t number, Sum<Value>* to) {
        const Value* from = image.line(number);
        std::fill_n(to, line.values, Sum<Value>{0});
        for (std::size_t k = 0; k < static_cast<std::size_t>(line.taps); ++k) {
          const std::int32_t* places = line.places.data() + k * line.values;
          const float* weights = line.weights.data() + k * line.values;
          for (std::size_t j = 0; j < line.values; ++j)
            to[j] += weights[j] * static_cast<Sum<Value>>(from[places[j]]);
        }
      });
  std::vector<Sum<Value>> sums(line.values);
  for (std::int64_t y = 0; y < size.height; ++y) {
    std::fill(sums.begin(), sums.end(), Sum<Value>{0});
    for (std::int64_t k = 0; k < rows.taps; ++k) {
      const auto tap = static_cast<std::size_t>(y * rows.taps + k);
      const float weight = rows.weights[tap];
      if (weight == 0) continue;
      const Sum<Value>* from = lines.line(rows.places[tap]);
      for (std::size_t j = 0; j < line.values; ++j) sums[j] += weight * from[j];
    }
    write_line(size, image.channels, layout, y, out, [&](std::size_t begin, std::size_t count, Value* to) {
      for (std::size_t j = 0; j < count; ++j) to[j] = rounded<Value>(sums[begin + j], begin + j >= even);
    });
  }
}

std::int32_t fixed(float weight, std::int32_t one) {
  return static_cast<std::int32_t>(std::lround(weight * static_cast<float>(one)));
}

// The same for bytes and two taps, in whole numbers (blend.h).
void resample_linear_bytes(const ImageView<std::uint8_t>& image, Size size, Interpolation interpolation,
                           Channels layout, std::uint8_t* out) {
  const AxisTaps rows = axis_taps({image.size.height, size.height}, interpolation, false);
  const LineTaps line =
      line_taps(axis_taps({image.size.width, size.width}, interpolation, false), image.channels, layout);
  const std::size_t values = line.values;
  std::vector<std::int32_t> weights(values);
  for (std::size_t j = 0; j < values; ++j) weights[j] = fixed(line.weights[values + j], blend_line_one);
  const auto old_values = static_cast<std::size_t>(image.size.width * image.channels);
  std::vector<std::int32_t> old_line(old_values);
  Lines<std::int16_t, std::function<void(std::int64_t, std::int16_t*)>> lines(
      2, values, [&](std::int64_t number, std::int16_t* to) {
        std::copy_n(image.line(number), old_values, old_line.data());
        blend_line({.old_line = old_line.data(),
                    .first = line.places.data(),
                    .second = line.places.data() + values,
                    .weights = weights.data()},
                   values, to);
      });
  for (std::int64_t y = 0; y < size.height; ++y) {
    const auto tap = static_cast<std::size_t>(2 * y);
    const std::int32_t weight = fixed(rows.weights[tap + 1], blend_rows_one);
    const std::int16_t* above = lines.line(rows.places[tap]);
    const std::int16_t* below = lines.line(rows.places[tap + 1]);
    write_line(size, image.channels, layout, y, out,
               [&](std::size_t begin, std::size_t count, std::uint8_t* to) {
                 blend_rows(above + begin, below + begin, weight, count, to);
               });
  }
}

}  // namespace

void resample(const ImageView<std::uint8_t>& image, Size size, Interpolation interpolation, Channels layout,
              std::uint8_t* out) {
  if (interpolation == Interpolation::nearest) return resample_nearest(image, size, layout, out);
  const bool two_taps = interpolation == Interpolation::linear ||
                        (interpolation == Interpolation::area && !shrinks(image.size, size));
  if (two_taps) return resample_linear_bytes(image, size, interpolation, layout, out);
  resample_weighted(image, size, interpolation, layout, out);
}

namespace {

template <class Value>
void resample_values(const ImageView<Value>& image, Size size, Interpolation interpolation, Channels layout,
                     Value* out) {
  if (interpolation == Interpolation::nearest) return resample_nearest(image, size, layout, out);
  resample_weighted(image, size, interpolation, layout, out);
}

}  // namespace

void resample(const ImageView<float>& image, Size size, Interpolation interpolation, Channels layout,
              float* out) {
  resample_values(image, size, interpolation, layout, out);
}

void resample(const ImageView<double>& image, Size size, Interpolation interpolation, Channels layout,
              double* out) {
  resample_values(image, size, interpolation, layout, out);
}

void resample(const ImageView<std::int16_t>& image, Size size, Interpolation interpolation, Channels layout,
              std::int16_t* out) {
  resample_values(image, size, interpolation, layout, out);
}

void resample(const ImageView<std::uint16_t>& image, Size size, Interpolation interpolation, Channels layout,
              std::uint16_t* out) {
  resample_values(image, size, interpolation, layout, out);
}

}  // namespace muster::data
