// The reference kernels as the oracle of a primitive library, on random convolutions and poolings.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "muster/tensor/kernels.h"
#include "muster/tensor/tensor.h"

namespace muster {

class Numbers {
 public:
  Numbers(std::uint64_t seed, std::uint64_t number) : random_(seed, number) {}
  std::int64_t from(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_.below(index_++, static_cast<std::uint64_t>(most - least + 1)));
  }
  bool coin() { return from(0, 1) == 1; }
  Tensor normal(Shape shape, DType dtype = DType::float32) {
    Tensor made(dtype, std::move(shape));
    for (std::int64_t i = 0; i < made.elements(); ++i)
      made.data<float>()[i] = static_cast<float>(random_.normal(2 * index_++));
    return made;
  }

 private:
  RandomStream random_;
  std::uint64_t index_ = 0;
};

inline Tensor zeros_like(const Tensor& tensor) { return Tensor::zeros(tensor.dtype(), tensor.shape()); }

// `tensor` from one format into another; what is not plain lies in a tensor of bytes.
inline Tensor reordered(const PrimitiveLibrary& library, const Tensor& tensor, const FormatPtr& from,
                        const FormatPtr& to, const Tensor& like) {
  if (same_format(from, to)) return tensor;
  const PrimitivePtr reorder = library.reorder(from, to, 2);
  MUSTER_CHECK(reorder != nullptr, "no reorder");
  const Tensor made =
      to == nullptr ? zeros_like(like) : Tensor(DType::uint8, {static_cast<std::int64_t>(to->size_bytes())});
  std::byte* in = tensor.bytes();
  std::byte* out = made.bytes();
  const auto scratch = Buffer::allocate(reorder->scratch_bytes);
  MUSTER_CHECK(reorder->run(&in, &out, scratch->data(), 2), "the reorder failed");
  return made;
}

inline FormatPtr format_at(const std::vector<FormatPtr>& formats, std::size_t index) {
  return index < formats.size() ? formats[index] : nullptr;
}

// Runs `primitive` on plain inputs into plain outputs, whatever formats it wants between.
inline void run(const PrimitiveLibrary& library, const Primitive& primitive,
                const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs, int threads = 2) {
  std::vector<Tensor> kept;
  std::vector<std::byte*> in, out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    kept.push_back(reordered(library, inputs[i], nullptr, format_at(primitive.input_formats, i), inputs[i]));
    in.push_back(kept.back().bytes());
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const FormatPtr given = format_at(primitive.output_formats, i);
    kept.push_back(given == nullptr ? outputs[i]
                                    : Tensor(DType::uint8, {static_cast<std::int64_t>(given->size_bytes())}));
    if (given != nullptr) std::memset(kept.back().bytes(), 0xA5, kept.back().size_bytes());
    out.push_back(kept.back().bytes());
  }
  const auto scratch = Buffer::allocate(primitive.scratch_bytes);
  ASSERT_TRUE(primitive.run(in.data(), out.data(), scratch->data(), threads));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const FormatPtr given = format_at(primitive.output_formats, i);
    if (given == nullptr) continue;
    const Tensor back = reordered(library, kept[inputs.size() + i], given, nullptr, outputs[i]);
    std::memcpy(outputs[i].bytes(), back.bytes(), back.size_bytes());
  }
}

inline void expect_near(const Tensor& found, const Tensor& expected, double terms, const char* what) {
  double scale = 1;  // of the summands, which are standard normal: their sum may nearly cancel
  for (const float value : expected.span<float>())
    scale = std::max(scale, std::abs(static_cast<double>(value)));
  for (std::int64_t i = 0; i < expected.elements(); ++i)
    ASSERT_NEAR(found.data<float>()[i], expected.data<float>()[i], 1e-6 * std::sqrt(terms) * scale + 1e-6)
        << what << " at " << i;
}

inline kernels::Conv2dSize some_conv2d(Numbers& numbers, std::int64_t batch_max) {
  kernels::Conv2dSize s;
  s.groups = numbers.coin() ? 1 : numbers.from(1, 4);
  s.batch = numbers.from(1, batch_max);
  s.in_channels = s.groups * numbers.from(1, numbers.coin() ? 4 : 20);
  s.out_channels = s.groups * numbers.from(1, numbers.coin() ? 4 : 20);
  s.kernel_height = numbers.from(1, 4);
  s.kernel_width = numbers.from(1, numbers.coin() ? 4 : 7);
  s.stride_height = numbers.from(1, 3);
  s.stride_width = numbers.from(1, 3);
  s.dilation_height = numbers.from(1, 2);
  s.dilation_width = numbers.from(1, 2);
  s.pad_top = numbers.from(0, 2);
  s.pad_bottom = numbers.from(0, 2);
  s.pad_left = numbers.from(0, 2);
  s.pad_right = numbers.from(0, 2);
  s.out_height = numbers.from(1, 7);
  s.out_width = numbers.from(1, 7);
  const auto in = [&](std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                      std::int64_t pads) {
    return std::max<std::int64_t>((out - 1) * stride + (kernel - 1) * dilation + 1 - pads, 1);
  };
  s.in_height =
      in(s.out_height, s.kernel_height, s.stride_height, s.dilation_height, s.pad_top + s.pad_bottom);
  s.in_width = in(s.out_width, s.kernel_width, s.stride_width, s.dilation_width, s.pad_left + s.pad_right);
  // An image of one pixel at least may be larger than what was wanted.
  s.out_height = (s.in_height + s.pad_top + s.pad_bottom - (s.kernel_height - 1) * s.dilation_height - 1) /
                     s.stride_height +
                 1;
  s.out_width =
      (s.in_width + s.pad_left + s.pad_right - (s.kernel_width - 1) * s.dilation_width - 1) / s.stride_width +
      1;
  s.in_height += numbers.from(0, s.stride_height - 1);  // pixels that no window reaches
  return s;
}

// Many groups with less than a block of channels each.
inline kernels::Conv2dSize some_conv2d_of_small_groups(Numbers& numbers, std::int64_t batch_max) {
  kernels::Conv2dSize s = some_conv2d(numbers, batch_max);
  s.groups = std::vector<std::int64_t>{2, 4, 6, 8, 16, 32}[static_cast<std::size_t>(numbers.from(0, 5))];
  s.in_channels = s.groups * numbers.from(1, 7);
  s.out_channels = s.groups * numbers.from(1, 7);
  return s;
}

inline kernels::Conv3dSize some_conv3d(Numbers& numbers) {
  kernels::Conv3dSize s;
  s.groups = numbers.coin() ? 1 : numbers.from(1, 3);
  s.batch = numbers.from(1, 3);
  s.in_channels = s.groups * numbers.from(1, numbers.coin() ? 4 : 20);
  s.out_channels = s.groups * numbers.from(1, numbers.coin() ? 4 : 20);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    s.kernel[axis] = numbers.from(1, 3);
    s.stride[axis] = numbers.from(1, 3);
    s.dilation[axis] = numbers.from(1, 2);
    s.pad_before[axis] = numbers.from(0, 2);
    s.pad_after[axis] = numbers.from(0, 2);
    const std::int64_t reach = (s.kernel[axis] - 1) * s.dilation[axis] + 1;
    s.in[axis] = reach + numbers.from(0, 5);  // windows may leave places behind
    s.out[axis] = (s.in[axis] + s.pad_before[axis] + s.pad_after[axis] - reach) / s.stride[axis] + 1;
  }
  return s;
}

inline kernels::Pool2dSize some_pool2d(Numbers& numbers, std::int64_t batch_max) {
  kernels::Pool2dSize s;
  s.batch = numbers.from(1, batch_max);
  s.channels = numbers.from(1, 20);
  s.kernel_height = numbers.from(1, 4);
  s.kernel_width = numbers.from(1, 4);
  s.stride_height = numbers.from(1, 3);
  s.stride_width = numbers.from(1, 3);
  s.pad_top = numbers.from(0, s.kernel_height - 1);
  s.pad_bottom = numbers.from(0, s.kernel_height - 1);
  s.pad_left = numbers.from(0, s.kernel_width - 1);
  s.pad_right = numbers.from(0, s.kernel_width - 1);
  s.in_height = numbers.from(s.kernel_height, 12);
  s.in_width = numbers.from(s.kernel_width, 12);
  s.out_height = (s.in_height + s.pad_top + s.pad_bottom - s.kernel_height) / s.stride_height + 1;
  s.out_width = (s.in_width + s.pad_left + s.pad_right - s.kernel_width) / s.stride_width + 1;
  s.count_include_pad = numbers.coin();
  return s;
}

// Compares 80 random convolutions of up to `batch_max` samples with the reference; returns how many
// primitives there were.
inline int convolve_as_the_reference_does(const PrimitiveLibrary& library, std::int64_t batch_max,
                                          decltype(some_conv2d)& draw = some_conv2d) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  int made = 0;
  for (std::uint64_t number = 0; number < 80; ++number) {
    SCOPED_TRACE(testing::Message() << "number " << number);
    Numbers numbers(seed, number);
    const kernels::Conv2dSize s = draw(numbers, batch_max);
    const Tensor x = numbers.normal({s.batch, s.in_channels, s.in_height, s.in_width});
    const Tensor weight =
        numbers.normal({s.out_channels, s.in_channels / s.groups, s.kernel_height, s.kernel_width});
    const Tensor bias = numbers.normal({s.out_channels});
    const Tensor y = numbers.normal({s.batch, s.out_channels, s.out_height, s.out_width});
    const bool with_bias = numbers.coin();
    const bool relu = numbers.coin();
    const Tensor expected_y = zeros_like(y), expected_x = zeros_like(x), expected_weight = zeros_like(weight);
    kernels::conv2d<float>(s, {.x = x.data<float>(),
                               .weight = weight.data<float>(),
                               .bias = with_bias ? bias.data<float>() : nullptr,
                               .y = expected_y.data<float>(),
                               .relu = relu});
    kernels::conv2d_grad_input<float>(
        s, {.dy = y.data<float>(), .weight = weight.data<float>(), .dx = expected_x.data<float>()});
    kernels::conv2d_grad_weight<float>(
        s, {.x = x.data<float>(), .dy = y.data<float>(), .dweight = expected_weight.data<float>()});
    const std::vector<FormatPtr> formats(3);
    for (const bool free : {false, true}) {
      const PrimitiveSetting setting{.formats = formats, .free = free, .threads = 2};
      const auto make = [&](Direction direction, bool bias_too, bool relu_too) {
        const PrimitivePtr primitive = library.conv2d(setting, s, direction, bias_too, relu_too);
        made += primitive != nullptr;
        return primitive;
      };
      const double taps = static_cast<double>(s.kernel_height * s.kernel_width * s.in_channels);
      const double pixels = static_cast<double>(s.batch * s.out_height * s.out_width);
      if (const auto primitive = make(Direction::forward, with_bias, relu)) {
        const Tensor found = zeros_like(y);
        run(library, *primitive, with_bias ? std::vector{x, weight, bias} : std::vector{x, weight}, {found});
        expect_near(found, expected_y, taps, "y");
      }
      if (const auto primitive = make(Direction::grad_input, false, false)) {
        const Tensor found = zeros_like(x);
        run(library, *primitive, {y, weight}, {found});
        expect_near(found, expected_x, taps, "dx");
      }
      if (const auto primitive = make(Direction::grad_weight, false, false)) {
        const Tensor found = zeros_like(weight);
        run(library, *primitive, {x, y}, {found});
        expect_near(found, expected_weight, pixels, "dweight");
      }
    }
  }
  return made;
}

// The same for 60 random convolutions of volumes.
inline int convolve_volumes_as_the_reference_does(const PrimitiveLibrary& library) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  int made = 0;
  for (std::uint64_t number = 0; number < 60; ++number) {
    SCOPED_TRACE(testing::Message() << "number " << number);
    Numbers numbers(seed, number);
    const kernels::Conv3dSize s = some_conv3d(numbers);
    const Tensor x = numbers.normal({s.batch, s.in_channels, s.in[0], s.in[1], s.in[2]});
    const Tensor weight =
        numbers.normal({s.out_channels, s.in_channels / s.groups, s.kernel[0], s.kernel[1], s.kernel[2]});
    const Tensor y = numbers.normal({s.batch, s.out_channels, s.out[0], s.out[1], s.out[2]});
    const Tensor expected_y = zeros_like(y), expected_x = zeros_like(x), expected_weight = zeros_like(weight);
    kernels::conv3d(s, x.data<float>(), weight.data<float>(), expected_y.data<float>(), 1);
    kernels::conv3d_grad_input(s, y.data<float>(), weight.data<float>(), expected_x.data<float>(), 1);
    kernels::conv3d_grad_weight(s, x.data<float>(), y.data<float>(), expected_weight.data<float>(), 1);
    const double taps = static_cast<double>(s.kernel[0] * s.kernel[1] * s.kernel[2] * s.in_channels);
    const double places = static_cast<double>(s.batch * s.out[0] * s.out[1] * s.out[2]);
    const std::vector<FormatPtr> formats(2);
    for (const bool free : {false, true}) {
      const PrimitiveSetting setting{.formats = formats, .free = free, .threads = 2};
      const auto compare = [&](Direction direction, const std::vector<Tensor>& inputs, const Tensor& expected,
                               double terms, const char* what) {
        const PrimitivePtr primitive = library.conv3d(setting, s, direction);
        if (primitive == nullptr) return;
        ++made;
        const Tensor found = zeros_like(expected);
        run(library, *primitive, inputs, {found});
        expect_near(found, expected, terms, what);
      };
      compare(Direction::forward, {x, weight}, expected_y, taps, "y");
      compare(Direction::grad_input, {y, weight}, expected_x, taps, "dx");
      compare(Direction::grad_weight, {x, y}, expected_weight, places, "dweight");
    }
  }
  return made;
}

// The same for 80 random poolings.
inline int pool_as_the_reference_does(const PrimitiveLibrary& library, std::int64_t batch_max) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  int made = 0;
  for (std::uint64_t number = 0; number < 80; ++number) {
    SCOPED_TRACE(testing::Message() << "number " << number);
    Numbers numbers(seed, number);
    const kernels::Pool2dSize s = some_pool2d(numbers, batch_max);
    const Tensor x = numbers.normal({s.batch, s.channels, s.in_height, s.in_width});
    const Tensor dy = numbers.normal({s.batch, s.channels, s.out_height, s.out_width});
    const Tensor positions = Tensor::zeros(DType::uint8, dy.shape());
    const Tensor max = zeros_like(dy), max_grad = zeros_like(x), avg = zeros_like(dy),
                 avg_grad = zeros_like(x);
    kernels::max_pool2d<float, std::uint8_t>(
        s, {.x = x.data<float>(), .y = max.data<float>(), .positions = positions.data<std::uint8_t>()});
    kernels::max_pool2d_grad<float, std::uint8_t>(
        s,
        {.dy = dy.data<float>(), .positions = positions.data<std::uint8_t>(), .dx = max_grad.data<float>()});
    kernels::avg_pool2d<float>(s, {.x = x.data<float>(), .y = avg.data<float>()});
    kernels::avg_pool2d_grad<float>(s, {.x = dy.data<float>(), .y = avg_grad.data<float>()});
    const std::vector<FormatPtr> formats(2);
    const PrimitiveSetting setting{.formats = formats, .free = true, .threads = 2};
    if (const auto primitive = library.max_pool2d(setting, s, Direction::forward)) {
      const Tensor y = zeros_like(dy), at = zeros_like(positions);
      run(library, *primitive, {x}, {y, at});
      expect_near(y, max, 1, "max");
      EXPECT_EQ(std::memcmp(at.bytes(), positions.bytes(), at.size_bytes()), 0) << "positions";
      ++made;
    }
    if (const auto primitive = library.max_pool2d(setting, s, Direction::grad_input)) {
      const Tensor dx = zeros_like(x);
      run(library, *primitive, {dy, positions}, {dx});
      expect_near(dx, max_grad, 9, "dx of max");
      ++made;
    }
    if (const auto primitive = library.avg_pool2d(setting, s, Direction::forward)) {
      const Tensor y = zeros_like(dy);
      run(library, *primitive, {x}, {y});
      expect_near(y, avg, 16, "avg");
      ++made;
    }
    if (const auto primitive = library.avg_pool2d(setting, s, Direction::grad_input)) {
      const Tensor dx = zeros_like(x);
      run(library, *primitive, {dy}, {dx});
      expect_near(dx, avg_grad, 16, "dx of avg");
      ++made;
    }
  }
  return made;
}

// The same for 60 random batch normalisations.
inline void normalise_as_the_reference_does(const PrimitiveLibrary& library, std::int64_t batch_max) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (std::uint64_t number = 0; number < 60; ++number) {
    SCOPED_TRACE(testing::Message() << "number " << number);
    Numbers numbers(seed, number);
    const kernels::BatchNormSize s{.batch = numbers.from(2, batch_max),
                                   .channels = numbers.from(1, 40),
                                   .inner = numbers.from(1, 30),
                                   .eps = 1e-3,
                                   .training = numbers.coin()};
    const Shape channels{s.channels};
    const Tensor x = numbers.normal({s.batch, s.channels, s.inner}), dy = numbers.normal(x.shape());
    const Tensor gamma = numbers.normal(channels), beta = numbers.normal(channels);
    const Tensor moving_mean = numbers.normal(channels),
                 moving_variance = Tensor::zeros(DType::float32, channels);
    for (float& value : moving_variance.span<float>()) value = static_cast<float>(numbers.from(1, 5));
    struct Results {
      Tensor moving_mean, moving_variance, y, mean, variance, dx, dgamma, dbeta;
    };
    const auto fresh = [&] {
      return Results{moving_mean.clone(), moving_variance.clone(), zeros_like(x),     zeros_like(gamma),
                     zeros_like(gamma),   zeros_like(x),           zeros_like(gamma), zeros_like(gamma)};
    };
    const Results expected = fresh();
    kernels::batch_norm<float>(s, {.x = x.data<float>(),
                                   .gamma = gamma.data<float>(),
                                   .beta = beta.data<float>(),
                                   .moving_mean = expected.moving_mean.data<float>(),
                                   .moving_variance = expected.moving_variance.data<float>(),
                                   .y = expected.y.data<float>(),
                                   .mean = expected.mean.data<float>(),
                                   .variance = expected.variance.data<float>()});
    kernels::batch_norm_grad<float>(s, {.x = x.data<float>(),
                                        .dy = dy.data<float>(),
                                        .gamma = gamma.data<float>(),
                                        .mean = expected.mean.data<float>(),
                                        .variance = expected.variance.data<float>(),
                                        .dx = expected.dx.data<float>(),
                                        .dgamma = expected.dgamma.data<float>(),
                                        .dbeta = expected.dbeta.data<float>()});
    const Results found = fresh();
    const std::vector<FormatPtr> formats(5);
    const PrimitiveSetting setting{.formats = formats, .free = true, .threads = 2};
    const auto forward = library.batch_norm(setting, s, Direction::forward, false);
    ASSERT_NE(forward, nullptr);
    run(library, *forward, {x, gamma, beta, found.moving_mean, found.moving_variance},
        {found.y, found.mean, found.variance});
    const auto backward = library.batch_norm(setting, s, Direction::grad_input, false);
    ASSERT_NE(backward, nullptr);
    run(library, *backward, {x, dy, gamma, expected.mean, expected.variance},
        {found.dx, found.dgamma, found.dbeta});
    const auto count = static_cast<double>(s.count());
    expect_near(found.y, expected.y, 100 * count, "y");
    expect_near(found.mean, expected.mean, count, "mean");
    expect_near(found.variance, expected.variance, count, "variance");
    expect_near(found.moving_mean, expected.moving_mean, count, "moving mean");
    expect_near(found.moving_variance, expected.moving_variance, count, "moving variance");
    expect_near(found.dx, expected.dx, 100 * count, "dx");
    expect_near(found.dgamma, expected.dgamma, 100 * count, "dgamma");
    expect_near(found.dbeta, expected.dbeta, count, "dbeta");
  }
}

}  // namespace muster
