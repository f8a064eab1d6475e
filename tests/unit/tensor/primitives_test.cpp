// The primitive library against the reference kernels on random sizes, in plain formats and in its own.
#include <gtest/gtest.h>

#include "oracle.h"

namespace muster {
namespace {

class Primitives : public ::testing::Test {
 protected:
  void SetUp() override {
    if (primitive_library() == nullptr) GTEST_SKIP() << "there is no primitive library here";
  }
};

TEST_F(Primitives, ConvolveAsTheReferenceDoes) {
  EXPECT_GT(convolve_as_the_reference_does(*primitive_library(), 3), 400) << "the library refuses too much";
}

TEST_F(Primitives, ConvolveSmallGroupsAsTheReferenceDoes) {
  EXPECT_GT(convolve_as_the_reference_does(*primitive_library(), 3, some_conv2d_of_small_groups), 400)
      << "the library refuses too much";
}

kernels::Conv2dSize depthwise(Numbers& numbers) {
  kernels::Conv2dSize s;
  s.batch = numbers.from(1, 4);
  s.groups = s.in_channels = s.out_channels = numbers.from(2, 40);
  const auto axis = [&](std::int64_t& in, std::int64_t& out, std::int64_t& kernel, std::int64_t& stride,
                        std::int64_t& dilation, std::int64_t& before, std::int64_t& after) {
    kernel = numbers.from(1, numbers.coin() ? 5 : 11);
    stride = numbers.from(1, 3);
    dilation = numbers.from(1, 2);
    before = numbers.from(0, kernel - 1);
    after = numbers.from(0, kernel - 1);
    const std::int64_t reach = (kernel - 1) * dilation + 1;
    in = std::max<std::int64_t>(1, reach + numbers.from(0, 12) - before - after);
    after = std::max(after, reach - in - before);
    out = (in + before + after - reach) / stride + 1;
  };
  axis(s.in_height, s.out_height, s.kernel_height, s.stride_height, s.dilation_height, s.pad_top,
       s.pad_bottom);
  axis(s.in_width, s.out_width, s.kernel_width, s.stride_width, s.dilation_width, s.pad_left, s.pad_right);
  return s;
}

Tensor depthwise_gradient(const kernels::Conv2dSize& s, const Tensor& x, const Tensor& dy, DType result,
                          int threads) {
  const PrimitivePtr made =
      primitive_library()->conv2d({.dtype = x.dtype(), .result = result, .free = true, .threads = threads}, s,
                                  Direction::grad_weight, false, false);
  MUSTER_CHECK(made != nullptr, "the library has no such gradient");
  const Tensor dweight = Tensor::zeros(result, {s.groups, 1, 1, s.kernel_height, s.kernel_width});
  run(*primitive_library(), *made, {x, dy}, {dweight}, threads);
  return dweight;
}

TEST_F(Primitives, GiveTheGradientOfADepthwiseWeightAsTheReferenceDoesOnAnyThreads) {
  for (std::uint64_t round = 0; round < 200; ++round) {
    SCOPED_TRACE(::testing::Message() << "seed 31, round " << round);
    Numbers numbers(31, round);
    const kernels::Conv2dSize s = depthwise(numbers);
    const Tensor x = numbers.normal({s.batch, s.in_channels, s.in_height, s.in_width});
    const Tensor dy = numbers.normal({s.batch, s.in_channels, s.out_height, s.out_width});
    const Tensor expected = Tensor::zeros(DType::float32, {s.groups, 1, 1, s.kernel_height, s.kernel_width});
    kernels::conv2d_grad_weight<float>(
        s, {.x = x.data<float>(), .dy = dy.data<float>(), .dweight = expected.data<float>()});
    const Tensor found = depthwise_gradient(s, x, dy, DType::float32, 1);
    const auto terms = static_cast<double>(s.batch * s.out_height * s.out_width);
    expect_near(found, expected, terms, "dweight");
    const Tensor again = depthwise_gradient(s, x, dy, DType::float32, static_cast<int>(numbers.from(2, 4)));
    ASSERT_EQ(std::memcmp(again.bytes(), found.bytes(), found.size_bytes()), 0) << "threads change bits";
  }
}

TEST_F(Primitives, GiveTheGradientOfADepthwiseWeightOfBfloat16AsThatOfTheSameFloats) {
  for (std::uint64_t round = 0; round < 50; ++round) {
    SCOPED_TRACE(::testing::Message() << "seed 32, round " << round);
    Numbers numbers(32, round);
    const kernels::Conv2dSize s = depthwise(numbers);
    const Tensor x = numbers.normal({s.batch, s.in_channels, s.in_height, s.in_width}).cast(DType::bfloat16);
    const Tensor dy =
        numbers.normal({s.batch, s.in_channels, s.out_height, s.out_width}).cast(DType::bfloat16);
    const Tensor expected =
        depthwise_gradient(s, x.cast(DType::float32), dy.cast(DType::float32), DType::float32, 2);
    const Tensor found = depthwise_gradient(s, x, dy, DType::float32, 2);
    ASSERT_EQ(std::memcmp(found.bytes(), expected.bytes(), found.size_bytes()), 0);
    const Tensor rounded = expected.cast(DType::bfloat16);
    const Tensor low = depthwise_gradient(s, x, dy, DType::bfloat16, 2);
    ASSERT_EQ(std::memcmp(low.bytes(), rounded.bytes(), low.size_bytes()), 0);
  }
}

TEST_F(Primitives, ConvolveVolumesAsTheReferenceDoes) {
  EXPECT_GT(convolve_volumes_as_the_reference_does(*primitive_library()), 300)
      << "the library refuses too much";
}

TEST_F(Primitives, PoolAsTheReferenceDoes) {
  EXPECT_GT(pool_as_the_reference_does(*primitive_library(), 3), 270) << "the library refuses too much";
}

TEST_F(Primitives, NormaliseAsTheReferenceDoes) { normalise_as_the_reference_does(*primitive_library(), 4); }

}  // namespace
}  // namespace muster
