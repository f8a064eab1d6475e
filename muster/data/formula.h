// Private: a formula, which gives what becomes of bytes by a few rounded steps, as Rescale and Normalize do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace muster::data {

// (byte * scale + shift - mean) / deviation, rounded to float32 after each step.
struct Formula {
  float scale = 1;
  float shift = 0;
  float mean = 0;
  float deviation = 1;
};

// Whether all 256 entries of a table are what the formula gives, to the bit.
bool gives(const Formula& formula, std::span<const float> table);

// Whether to compute is faster here than to look up: where the processor has AVX2, and not AVX-512 VBMI,
// which looks up 64 elements at once. A table's elements are stored one by one, these eight at once.
bool computes_faster();
// out[i] = formula(in[i]).
void compute(const Formula& formula, const std::uint8_t* in, std::size_t count, float* out);

}  // namespace muster::data
