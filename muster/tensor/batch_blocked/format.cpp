#include "muster/tensor/batch_blocked/format.h"

#include <algorithm>
#include <cstring>

#include "muster/tensor/batch_blocked/batch_blocked.h"
#include "muster/tensor/parallel.h"

namespace muster::batch_blocked {
namespace {

constexpr std::int64_t part_elements = 4096;  // of each sample: some microseconds of work

// Positions of maxima, which only a graph that gives them to its caller reorders.
void gather_bytes(const std::byte* plain, std::int64_t sample, std::int64_t valid, std::int64_t count,
                  std::byte* blocked) {
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t s = 0; s < samples; ++s)
      blocked[i * samples + s] = s < valid ? plain[s * sample + i] : std::byte{0};
}

void scatter_bytes(const std::byte* blocked, std::int64_t sample, std::int64_t valid, std::int64_t count,
                   std::byte* plain) {
  for (std::int64_t s = 0; s < valid; ++s)
    for (std::int64_t i = 0; i < count; ++i) plain[s * sample + i] = blocked[i * samples + s];
}

}  // namespace

bool BatchBlockedFormat::equals(const Format& other) const {
  const auto* const blocked = dynamic_cast<const BatchBlockedFormat*>(&other);
  return blocked != nullptr && blocked->batch_ == batch_ && blocked->inner_ == inner_ &&
         blocked->element_bytes_ == element_bytes_;
}

template <class Part>
void BatchBlockedFormat::for_parts(int threads, const Part& part) const {
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

void BatchBlockedFormat::gather(const Simd& simd, const std::byte* plain, std::byte* blocked,
                                int threads) const {
  const auto bytes = static_cast<std::int64_t>(element_bytes_);
  for_parts(threads, [&](std::int64_t block, std::int64_t first, std::int64_t last) {
    const std::int64_t valid = std::min(samples, batch_ - block * samples);
    const std::byte* const from = plain + (block * samples * inner_ + first) * bytes;
    std::byte* const to = blocked + (block * inner_ + first) * samples * bytes;
    if (bytes == sizeof(float))
      simd.gather(reinterpret_cast<const float*>(from), inner_, valid, last - first,
                  reinterpret_cast<float*>(to));
    else
      gather_bytes(from, inner_, valid, last - first, to);
  });
}

void BatchBlockedFormat::scatter(const Simd& simd, const std::byte* blocked, std::byte* plain,
                                 int threads) const {
  const auto bytes = static_cast<std::int64_t>(element_bytes_);
  for_parts(threads, [&](std::int64_t block, std::int64_t first, std::int64_t last) {
    const std::int64_t valid = std::min(samples, batch_ - block * samples);
    const std::byte* const from = blocked + (block * inner_ + first) * samples * bytes;
    std::byte* const to = plain + (block * samples * inner_ + first) * bytes;
    if (bytes == sizeof(float))
      simd.scatter(reinterpret_cast<const float*>(from), inner_, valid, last - first,
                   reinterpret_cast<float*>(to));
    else
      scatter_bytes(from, inner_, valid, last - first, to);
  });
}

BatchBlockedFormatPtr as_batch_blocked(const FormatPtr& format) {
  return std::dynamic_pointer_cast<const BatchBlockedFormat>(format);
}

}  // namespace muster::batch_blocked

namespace muster {

bool is_batch_blocked(const FormatPtr& format) { return batch_blocked::as_batch_blocked(format) != nullptr; }

bool fills_batch_blocks(std::int64_t batch) {
  return 2 * batch > batch_blocked::blocks_of(batch) * batch_blocked::samples;
}

}  // namespace muster
