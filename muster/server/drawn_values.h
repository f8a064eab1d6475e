// Drawn values: numbers of a RandomStream as float32, on whole vectors. Private to server.
#pragma once

#include <cstdint>
#include <span>

#include "muster/base/base.h"

namespace muster::server {

// Which numbers: of RandomStream(seed, stream), from `index` on.
struct DrawnFrom {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t index = 0;
};

// static_cast<float>(mean + scale * normal(index)) and on: the bits of RandomStream::normal and the C
// library. A vector's polynomials are not the C library's: a number that lies so near to the middle between
// two floats that they could round it to the other one is drawn by RandomStream itself, one in some 100,000.
void draw_normal(const DrawnFrom& from, double scale, double mean, std::span<float> values);
// static_cast<float>(scale * (2 * uniform(index) - 1)) and on.
void draw_uniform(const DrawnFrom& from, double scale, std::span<float> values);

}  // namespace muster::server
