// Private: linear interpolation of bytes in whole numbers, the inner loops of Resize. The bits are the same
// on every processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::data {

constexpr std::int32_t blend_line_one = 1 << 11;  // a weight of 1 along a line
constexpr std::int32_t blend_rows_one = 1 << 11;  // and across lines

struct LineBlend {
  const std::int32_t* old_line;  // bytes, each in an int32
  const std::int32_t* first;     // for each new value, its two places in the old line,
  const std::int32_t* second;
  const std::int32_t* weights;  // and the weight of the second
};

// Along a line: 128 times the blend, rounded down.
void blend_line(const LineBlend& blend, std::size_t count, std::int16_t* out);

// Across two such lines, `weight` of the one below: bytes; each part is rounded down before the sum is
// rounded.
void blend_rows(const std::int16_t* above, const std::int16_t* below, std::int32_t weight, std::size_t count,
                std::uint8_t* out);

}  // namespace muster::data
