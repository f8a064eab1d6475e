// Pooling, plane by plane.
#include "muster/tensor/batch_blocked/primitives.h"
#include "muster/tensor/parallel.h"

namespace muster::batch_blocked {
namespace {

using kernels::Pool2dSize;

class Pooling : public Primitive {
 public:
  Pooling(const Simd& simd, const Pool2dSize& size)
      : simd_(simd),
        size_(size),
        x_plane_(size.in_height * size.in_width * samples),
        y_plane_(size.out_height * size.out_width * samples) {}

 protected:
  FormatPtr x_format() const {
    return batch_blocked_format(size_.batch, size_.channels * x_plane_ / samples);
  }
  FormatPtr y_format(std::size_t element_bytes = sizeof(float)) const {
    return batch_blocked_format(size_.batch, size_.channels * y_plane_ / samples, element_bytes);
  }
  // Calls plane(x offset, y offset) for each plane.
  template <class Plane>
  void for_planes(int threads, const Plane& plane) const {
    const std::int64_t planes = blocks_of(size_.batch) * size_.channels;
    parallel_for(planes, 1, threads_for(planes * x_plane_ * operations_per_pixel, threads),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) plane(i * x_plane_, i * y_plane_);
                 });
  }

  static constexpr std::int64_t operations_per_pixel = 8;

  const Simd& simd_;
  Pool2dSize size_;
  std::int64_t x_plane_;
  std::int64_t y_plane_;
};

float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

class MaxPool final : public Pooling {
 public:
  MaxPool(const Simd& simd, const Pool2dSize& size) : Pooling(simd, size) {
    input_formats = {x_format()};
    output_formats = {y_format(), y_format(1)};
  }
  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte*, int threads) const override {
    for_planes(threads, [&](std::int64_t x, std::int64_t y) {
      simd_.max_pool(size_, floats(inputs[0]) + x, floats(outputs[0]) + y,
                     reinterpret_cast<std::uint8_t*>(outputs[1]) + y);
    });
    return true;
  }
};

class MaxPoolGrad final : public Pooling {
 public:
  MaxPoolGrad(const Simd& simd, const Pool2dSize& size) : Pooling(simd, size) {
    input_formats = {y_format(), y_format(1)};
    output_formats = {x_format()};
  }
  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte*, int threads) const override {
    for_planes(threads, [&](std::int64_t x, std::int64_t y) {
      simd_.max_pool_grad(size_, floats(inputs[0]) + y, reinterpret_cast<const std::uint8_t*>(inputs[1]) + y,
                          floats(outputs[0]) + x);
    });
    return true;
  }
};

class AvgPool final : public Pooling {
 public:
  AvgPool(const Simd& simd, const Pool2dSize& size) : Pooling(simd, size) {
    input_formats = {x_format()};
    output_formats = {y_format()};
  }
  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte*, int threads) const override {
    for_planes(threads, [&](std::int64_t x, std::int64_t y) {
      simd_.avg_pool(size_, floats(inputs[0]) + x, floats(outputs[0]) + y);
    });
    return true;
  }
};

class AvgPoolGrad final : public Pooling {
 public:
  AvgPoolGrad(const Simd& simd, const Pool2dSize& size) : Pooling(simd, size) {
    input_formats = {y_format()};
    output_formats = {x_format()};
  }
  bool run(std::byte* const* inputs, std::byte* const* outputs, std::byte*, int threads) const override {
    for_planes(threads, [&](std::int64_t x, std::int64_t y) {
      simd_.avg_pool_grad(size_, floats(inputs[0]) + y, floats(outputs[0]) + x);
    });
    return true;
  }
};

}  // namespace

PrimitivePtr make_max_pool2d(const Simd& simd, const Pool2dSize& size, Direction direction) {
  if (size.kernel_height * size.kernel_width > 255) return nullptr;  // positions are bytes
  if (direction == Direction::forward) return std::make_shared<MaxPool>(simd, size);
  return std::make_shared<MaxPoolGrad>(simd, size);
}

PrimitivePtr make_avg_pool2d(const Simd& simd, const Pool2dSize& size, Direction direction) {
  if (direction == Direction::forward) return std::make_shared<AvgPool>(simd, size);
  return std::make_shared<AvgPoolGrad>(simd, size);
}

}  // namespace muster::batch_blocked
