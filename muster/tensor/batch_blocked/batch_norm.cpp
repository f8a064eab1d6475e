// Batch normalisation, channel by channel.
#include <algorithm>
#include <cmath>

#include "muster/tensor/batch_blocked/primitives.h"
#include "muster/tensor/parallel.h"

namespace muster::batch_blocked {
namespace {

using kernels::BatchNormSize;

class BatchNorm : public Primitive {
 public:
  BatchNorm(const Simd& simd, const BatchNormSize& size)
      : simd_(simd), size_(size), blocks_(blocks_of(size.batch)), plane_(size.inner * samples) {}

 protected:
  FormatPtr format(std::size_t element_bytes = sizeof(float)) const {
    return batch_blocked_format(size_.batch, size_.channels * size_.inner, element_bytes);
  }
  std::int64_t offset(std::int64_t block, std::int64_t channel) const {
    return (block * size_.channels + channel) * plane_;
  }
  std::int64_t valid(std::int64_t block) const { return std::min(samples, size_.batch - block * samples); }
  float inverse(float variance) const {
    return static_cast<float>(1 / std::sqrt(static_cast<double>(variance) + size_.eps));
  }
  // Calls channel(c) for each channel.
  template <class Channel>
  void for_channels(int threads, const Channel& channel) const {
    parallel_for(size_.channels, 1, threads_for(blocks_ * size_.channels * plane_, threads),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t c = begin; c < end; ++c) channel(c);
                 });
  }

  const Simd& simd_;
  BatchNormSize size_;
  std::int64_t blocks_;
  std::int64_t plane_;
};

class Forward final : public BatchNorm {
 public:
  Forward(const Simd& simd, const BatchNormSize& size, bool relu) : BatchNorm(simd, size) {
    input_formats = {format(), nullptr, nullptr, nullptr, nullptr};
    output_formats = {format(), nullptr, nullptr};
    if (relu) output_formats.push_back(format(1));
  }
  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte*, int threads) const override {
    const auto in = [&](std::size_t i) { return reinterpret_cast<float*>(inputs[i]); };
    const auto out = [&](std::size_t i) { return reinterpret_cast<float*>(outputs[i]); };
    const bool relu = output_formats.size() == 4;
    for_channels(threads, [&](std::int64_t c) {
      use_statistics(in(0), c, {in(3) + c, in(4) + c, out(1) + c, out(2) + c});
      for (std::int64_t block = 0; block < blocks_; ++block) {
        const std::int64_t at = offset(block, c);
        simd_.norm({.x = in(0) + at,
                    .pixels = size_.inner,
                    .valid = valid(block),
                    .mean = out(1)[c],
                    .scale = in(1)[c] * inverse(out(2)[c]),
                    .beta = in(2)[c],
                    .y = out(0) + at,
                    .mask = relu ? reinterpret_cast<std::uint8_t*>(outputs[3]) + at : nullptr});
      }
    });
    return true;
  }

 private:
  // Of one channel.
  struct Statistics {
    float* moving_mean = nullptr;
    float* moving_variance = nullptr;
    float* mean = nullptr;
    float* variance = nullptr;
  };
  // The batch's, which move the moving ones; else the moving ones.
  void use_statistics(const float* x, std::int64_t channel, const Statistics& statistics) const {
    if (!size_.training) {
      *statistics.mean = *statistics.moving_mean;
      *statistics.variance = *statistics.moving_variance;
      return;
    }
    const auto count = static_cast<double>(size_.count());
    double sum = 0, squares = 0;
    for (std::int64_t block = 0; block < blocks_; ++block)
      sum += static_cast<double>(simd_.plane_sum(x + offset(block, channel), size_.inner));
    *statistics.mean = static_cast<float>(sum / count);
    for (std::int64_t block = 0; block < blocks_; ++block)
      squares += static_cast<double>(
          simd_.plane_squares(x + offset(block, channel), size_.inner, valid(block), *statistics.mean));
    *statistics.variance = static_cast<float>(squares / count);
    move(*statistics.moving_mean, sum / count);
    move(*statistics.moving_variance, squares / count * size_.unbiased());
  }
  void move(float& moving, double batch) const {
    moving = static_cast<float>(size_.moved(static_cast<double>(moving), batch));
  }
};

class Backward final : public BatchNorm {
 public:
  Backward(const Simd& simd, const BatchNormSize& size, bool relu) : BatchNorm(simd, size) {
    input_formats = {format(), format(), nullptr, nullptr, nullptr};
    if (relu) input_formats.push_back(format(1));
    output_formats = {format(), nullptr, nullptr};
  }
  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte*, int threads) const override {
    const auto in = [&](std::size_t i) { return reinterpret_cast<const float*>(inputs[i]); };
    const auto out = [&](std::size_t i) { return reinterpret_cast<float*>(outputs[i]); };
    const auto* const mask =
        input_formats.size() == 6 ? reinterpret_cast<const std::uint8_t*>(inputs[5]) : nullptr;
    for_channels(threads, [&](std::int64_t c) {
      const float inverse_deviation = inverse(in(4)[c]);
      const auto plane = [&](std::int64_t block) {
        const std::int64_t at = offset(block, c);
        return NormGradPlane{.x = in(0) + at,
                             .dy = in(1) + at,
                             .mask = mask == nullptr ? nullptr : mask + at,
                             .pixels = size_.inner,
                             .valid = valid(block),
                             .mean = in(3)[c],
                             .scale = in(2)[c] * inverse_deviation,
                             .dx = out(0) + at};
      };
      double dbeta = 0, product = 0;
      for (std::int64_t block = 0; block < blocks_; ++block) {
        const NormSums sums = simd_.norm_sums(plane(block));
        dbeta += static_cast<double>(sums.dy);
        product += static_cast<double>(sums.product);
      }
      const double dgamma = product * static_cast<double>(inverse_deviation);
      out(1)[c] = static_cast<float>(dgamma);
      out(2)[c] = static_cast<float>(dbeta);
      for (std::int64_t block = 0; block < blocks_; ++block) {
        NormGradPlane to = plane(block);
        if (size_.training) {  // the batch's own mean and variance depend on x too
          const auto count = static_cast<double>(size_.count());
          to.constant = static_cast<float>(dbeta / count);
          to.slope = static_cast<float>(dgamma / count * static_cast<double>(inverse_deviation));
        }
        simd_.norm_grad(to);
      }
    });
    return true;
  }
};

}  // namespace

PrimitivePtr make_batch_norm(const Simd& simd, const BatchNormSize& size, Direction direction, bool relu) {
  if (direction == Direction::forward) return std::make_shared<Forward>(simd, size, relu);
  return std::make_shared<Backward>(simd, size, relu);
}

}  // namespace muster::batch_blocked
