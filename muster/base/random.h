// Random numbers from counters: the i-th number of a stream is a pure function of (key, stream, i), so
// results do not depend on the order of drawing, on threads or on ranks.
//
// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>

namespace muster {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// One stream of numbers, addressed by index or drawn in order.
class RandomStream {
 public:
  // `seed` is the job's; `stream` says what the numbers are for, usually a hash of a name.
  RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  std::uint64_t bits(std::uint64_t index) const;
  // Uniform in [0, 1), 53 random bits.
  double uniform(std::uint64_t index) const;
  // Standard normal, by Box and Muller; indices 2k and 2k+1 share one draw.
  double normal(std::uint64_t index) const;
  // Uniform in [0, bound) without bias beyond 2^-64 * bound; bound > 0.
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

// Unpredictable bits from the operating system, for job seeds and tokens.
std::uint64_t entropy();

}  // namespace muster
