// Private: weights with which pixels of a line make those of a line of another length.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/data/vision.h"

namespace muster::data {

// Pixel i of the new line is the sum over k < taps of weights[i * taps + k] * old[places[i * taps + k]].
struct AxisTaps {
  std::int64_t taps = 1;
  std::vector<std::int32_t> places;
  std::vector<float> weights;
};

struct AxisSize {
  std::int64_t from = 1;
  std::int64_t to = 1;
};

// `shrinks` says whether neither side of the image grows: only then does `area` average areas.
AxisTaps axis_taps(AxisSize size, Interpolation interpolation, bool shrinks);

}  // namespace muster::data
