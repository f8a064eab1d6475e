// Private to batch_blocked: images with 16 samples side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/base/base.h"
#include "muster/tensor/batch_blocked/simd.h"
#include "muster/tensor/format.h"

namespace muster::batch_blocked {

constexpr std::int64_t samples = 16;

inline std::int64_t blocks_of(std::int64_t batch) { return (batch + samples - 1) / samples; }

// (N / 16, C, H, W, 16): in place of each sample a block of 16, of which the last is filled up with samples
// of zeros.
class BatchBlockedFormat final : public Format {
 public:
  // `inner` is the number of elements of one sample.
  BatchBlockedFormat(std::int64_t batch, std::int64_t inner, std::size_t element_bytes)
      : batch_(batch), inner_(inner), element_bytes_(element_bytes) {}

  std::size_t size_bytes() const override {
    return static_cast<std::size_t>(blocks_of(batch_) * inner_ * samples) * element_bytes_;
  }
  std::string name() const override { return "Abcd16a"; }
  bool equals(const Format& other) const override;

  // Elements in row-major order into this one, and back.
  void gather(const Simd& simd, const std::byte* plain, std::byte* blocked, int threads) const;
  void scatter(const Simd& simd, const std::byte* blocked, std::byte* plain, int threads) const;

 private:
  // Calls part(block, begin, end) for parts of all blocks' elements, on several threads.
  template <class Part>
  void for_parts(int threads, const Part& part) const;

  std::int64_t batch_;
  std::int64_t inner_;
  std::size_t element_bytes_;
};
using BatchBlockedFormatPtr = std::shared_ptr<const BatchBlockedFormat>;

inline BatchBlockedFormatPtr batch_blocked_format(std::int64_t batch, std::int64_t inner,
                                                  std::size_t element_bytes = sizeof(float)) {
  return std::make_shared<const BatchBlockedFormat>(batch, inner, element_bytes);
}

// Null for any other format.
BatchBlockedFormatPtr as_batch_blocked(const FormatPtr& format);

}  // namespace muster::batch_blocked
