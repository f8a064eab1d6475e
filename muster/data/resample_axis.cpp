#include "muster/data/resample_axis.h"

#include <algorithm>
#include <cmath>

namespace muster::data {
namespace {

// Where pixel i of the new line lies between pixels `place` and `place` + 1 of the old one.
struct Position {
  std::int64_t place;
  float fraction;
};

double ratio_of(AxisSize size) {  // the two divisions round as OpenCV's do; `nearest` must hit its pixels
  return 1.0 / (static_cast<double>(size.to) / static_cast<double>(size.from));
}

// Pixels are squares, and their centres are compared.
Position centre_position(AxisSize size, std::int64_t i) {
  const auto at = static_cast<float>((static_cast<double>(i) + 0.5) * ratio_of(size) - 0.5);
  const float place = std::floor(at);
  return {static_cast<std::int64_t>(place), at - place};
}

// `area` of a line that does not shrink: new pixels inside an old one are copies of it, only those across an
// edge are mixed.
Position edge_position(AxisSize size, std::int64_t i) {
  const auto place = static_cast<std::int64_t>(std::floor(static_cast<double>(i) * ratio_of(size)));
  const double inverse = static_cast<double>(size.to) / static_cast<double>(size.from);
  const auto past = static_cast<float>(static_cast<double>(i + 1) - static_cast<double>(place + 1) * inverse);
  return {place, past <= 0 ? 0.0f : past - std::floor(past)};
}

AxisTaps nearest_taps(AxisSize size) {
  AxisTaps made;
  for (std::int64_t i = 0; i < size.to; ++i) {
    const auto place = static_cast<std::int64_t>(std::floor(static_cast<double>(i) * ratio_of(size)));
    made.places.push_back(static_cast<std::int32_t>(std::min(place, size.from - 1)));
    made.weights.push_back(1);
  }
  return made;
}

AxisTaps linear_taps(AxisSize size, Position (*position)(AxisSize, std::int64_t)) {
  AxisTaps made;
  made.taps = 2;
  for (std::int64_t i = 0; i < size.to; ++i) {
    const auto [place, fraction] = position(size, i);
    for (const std::int64_t each : {place, place + 1})  // at the edges one pixel twice, as OpenCV rounds it
      made.places.push_back(static_cast<std::int32_t>(std::clamp<std::int64_t>(each, 0, size.from - 1)));
    made.weights.push_back(1 - fraction);
    made.weights.push_back(fraction);
  }
  return made;
}

// Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -0.75 as OpenCV has
// it.
float cubic_weight(float distance) {
  constexpr float a = -0.75f;
  const float d = std::abs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

AxisTaps cubic_taps(AxisSize size) {
  AxisTaps made;
  made.taps = 4;
  for (std::int64_t i = 0; i < size.to; ++i) {
    const auto [place, fraction] = centre_position(size, i);
    for (std::int64_t k = -1; k <= 2; ++k) {
      made.places.push_back(static_cast<std::int32_t>(std::clamp<std::int64_t>(place + k, 0, size.from - 1)));
      made.weights.push_back(cubic_weight(fraction - static_cast<float>(k)));
    }
  }
  return made;
}

// Each new pixel is the mean over the old ones that it covers, in parts or whole.
AxisTaps area_taps(AxisSize size) {
  const double ratio = ratio_of(size);
  AxisTaps made;
  made.taps = static_cast<std::int64_t>(std::ceil(ratio)) + 1;
  for (std::int64_t i = 0; i < size.to; ++i) {
    const double begin = static_cast<double>(i) * ratio;
    const double end = std::min(begin + ratio, static_cast<double>(size.from));
    const auto first = static_cast<std::int64_t>(begin);
    for (std::int64_t k = 0; k < made.taps; ++k) {
      const double left = std::max(begin, static_cast<double>(first + k));
      const double right = std::min(end, static_cast<double>(first + k + 1));
      made.places.push_back(static_cast<std::int32_t>(std::min(first + k, size.from - 1)));
      made.weights.push_back(static_cast<float>(std::max(right - left, 0.0) / (end - begin)));
    }
  }
  return made;
}

}  // namespace

AxisTaps axis_taps(AxisSize size, Interpolation interpolation, bool shrinks) {
  switch (interpolation) {
    case Interpolation::nearest:
      return nearest_taps(size);
    case Interpolation::linear:
      break;
    case Interpolation::cubic:
      return cubic_taps(size);
    case Interpolation::area:
      return shrinks ? area_taps(size) : linear_taps(size, edge_position);
  }
  return linear_taps(size, centre_position);
}

}  // namespace muster::data
