#include <vector>

#include "muster/tensor/batch_blocked/primitives.h"
#include "muster/tensor/parallel.h"

namespace muster::batch_blocked {
namespace {

class ChannelSum final : public Primitive {
 public:
  ChannelSum(const Simd& simd, const Shape& x)
      : simd_(simd), blocks_(blocks_of(x[0])), channels_(x[1]), plane_(x.elements() / (x[0] * x[1])) {
    input_formats = {batch_blocked_format(x[0], channels_ * plane_)};
    output_formats = {nullptr};
  }
  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte*, int threads) const override {
    const auto* const x = reinterpret_cast<const float*>(inputs[0]);
    auto* const out = reinterpret_cast<float*>(outputs[0]);
    parallel_for(channels_, 1, threads_for(blocks_ * channels_ * plane_ * samples, threads),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t c = begin; c < end; ++c) out[c] = sum(x, c);
                 });
    return true;
  }

 private:
  // Of rounded sums of single planes, so that the rounding error grows with the root of a plane only.
  float sum(const float* x, std::int64_t channel) const {
    double total = 0;
    for (std::int64_t block = 0; block < blocks_; ++block)
      total +=
          static_cast<double>(simd_.plane_sum(x + (block * channels_ + channel) * plane_ * samples, plane_));
    return static_cast<float>(total);
  }

  const Simd& simd_;
  std::int64_t blocks_;
  std::int64_t channels_;
  std::int64_t plane_;
};

}  // namespace

PrimitivePtr make_channel_sum(const Simd& simd, const Shape& x) {
  return std::make_shared<ChannelSum>(simd, x);
}

}  // namespace muster::batch_blocked
