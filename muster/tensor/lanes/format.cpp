#include "muster/tensor/lanes/format.h"

#include <algorithm>
#include <cstring>

#include "muster/tensor/lanes/lanes.h"
#include "muster/tensor/parallel.h"

namespace muster::lanes {
namespace {

constexpr std::int64_t part_elements = 4096;  // of each sample: some microseconds of work

// Positions of maxima, which only a graph that gives them to its caller reorders.
void gather_bytes(const std::byte* plain, std::int64_t sample, std::int64_t valid, std::int64_t count,
                  std::byte* lanes) {
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t s = 0; s < samples; ++s)
      lanes[i * samples + s] = s < valid ? plain[s * sample + i] : std::byte{0};
}

void scatter_bytes(const std::byte* lanes, std::int64_t sample, std::int64_t valid, std::int64_t count,
                   std::byte* plain) {
  for (std::int64_t s = 0; s < valid; ++s)
    for (std::int64_t i = 0; i < count; ++i) plain[s * sample + i] = lanes[i * samples + s];
}

}  // namespace

bool LanesFormat::equals(const Format& other) const {
  const auto* const lanes = dynamic_cast<const LanesFormat*>(&other);
  return lanes != nullptr && lanes->batch_ == batch_ && lanes->inner_ == inner_ &&
         lanes->element_bytes_ == element_bytes_;
}

template <class Part>
void LanesFormat::for_parts(int threads, const Part& part) const {
  parallel_for(blocks_of(batch_) * inner_, part_elements, threads, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t block = begin / inner_;
      const std::int64_t first = begin % inner_;
      const std::int64_t last = std::min(inner_, first + end - begin);
      part(block, first, last);
      begin += last - first;
    }
  });
}

void LanesFormat::gather(const Simd& simd, const std::byte* plain, std::byte* lanes, int threads) const {
  const auto bytes = static_cast<std::int64_t>(element_bytes_);
  for_parts(threads, [&](std::int64_t block, std::int64_t first, std::int64_t last) {
    const std::int64_t valid = std::min(samples, batch_ - block * samples);
    const std::byte* const from = plain + (block * samples * inner_ + first) * bytes;
    std::byte* const to = lanes + (block * inner_ + first) * samples * bytes;
    if (bytes == sizeof(float))
      simd.gather(reinterpret_cast<const float*>(from), inner_, valid, last - first,
                  reinterpret_cast<float*>(to));
    else
      gather_bytes(from, inner_, valid, last - first, to);
  });
}

void LanesFormat::scatter(const Simd& simd, const std::byte* lanes, std::byte* plain, int threads) const {
  const auto bytes = static_cast<std::int64_t>(element_bytes_);
  for_parts(threads, [&](std::int64_t block, std::int64_t first, std::int64_t last) {
    const std::int64_t valid = std::min(samples, batch_ - block * samples);
    const std::byte* const from = lanes + (block * inner_ + first) * samples * bytes;
    std::byte* const to = plain + (block * samples * inner_ + first) * bytes;
    if (bytes == sizeof(float))
      simd.scatter(reinterpret_cast<const float*>(from), inner_, valid, last - first,
                   reinterpret_cast<float*>(to));
    else
      scatter_bytes(from, inner_, valid, last - first, to);
  });
}

LanesFormatPtr as_lanes(const FormatPtr& format) {
  return std::dynamic_pointer_cast<const LanesFormat>(format);
}

}  // namespace muster::lanes

namespace muster {

bool in_lanes(const FormatPtr& format) { return lanes::as_lanes(format) != nullptr; }

bool fills_lanes(std::int64_t batch) { return 2 * batch > lanes::blocks_of(batch) * lanes::samples; }

}  // namespace muster
