// Products of bfloat16 that primitives of float32 compute.
#include "muster/tensor/wide_products.h"

#include <gtest/gtest.h>

#include "oracle.h"

namespace muster {
namespace {

class WideProducts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (primitive_library() == nullptr) GTEST_SKIP() << "there is no primitive library here";
  }
  const PrimitiveLibrary& wide() { return with_wide_products(*primitive_library()); }
};

// Enough products for each element that the casts are worth it.
kernels::Conv2dSize large_conv2d(Numbers& numbers) {
  kernels::Conv2dSize s;
  s.batch = numbers.from(1, 3);
  s.in_channels = numbers.from(30, 80);
  s.out_channels = numbers.from(30, 80);
  s.kernel_height = s.kernel_width = 3;
  s.pad_top = s.pad_bottom = s.pad_left = s.pad_right = 1;
  s.in_height = s.out_height = numbers.from(9, 15);
  s.in_width = s.out_width = numbers.from(9, 15);
  return s;
}

Tensor low(Numbers& numbers, const Shape& shape) { return numbers.normal(shape).cast(DType::bfloat16); }

bool are_equal(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && std::memcmp(a.bytes(), b.bytes(), a.size_bytes()) == 0;
}

// That of the same numbers in float32, rounded once where `result` is bfloat16.
template <class Make>
void expect_rounded_float32(const PrimitiveLibrary& library, const std::vector<Tensor>& inputs,
                            const Shape& output, DType result, const Make& make) {
  const PrimitivePtr made = make(DType::bfloat16, result);
  ASSERT_NE(made, nullptr);
  const Tensor found = Tensor::zeros(result, output);
  run(library, *made, inputs, {found});

  std::vector<Tensor> widened;
  std::size_t copies_bytes = 0;
  for (const Tensor& input : inputs) {
    widened.push_back(input.cast(DType::float32));
    if (input.dtype() == DType::bfloat16) copies_bytes += widened.back().size_bytes();
  }
  EXPECT_GE(made->scratch_bytes, copies_bytes) << "the library's own product of bfloat16 ran";
  const Tensor expected = Tensor::zeros(DType::float32, output);
  run(library, *make(DType::float32, DType::float32), widened, {expected});
  EXPECT_TRUE(are_equal(found, expected.cast(result)));
}

TEST_F(WideProducts, OfImagesAreThoseOfFloat32RoundedOnce) {
  for (std::uint64_t round = 0; round < 40; ++round) {
    SCOPED_TRACE(::testing::Message() << "seed 41, round " << round);
    Numbers numbers(41, round);
    const kernels::Conv2dSize s = large_conv2d(numbers);
    const Shape x{s.batch, s.in_channels, s.in_height, s.in_width};
    const Shape y{s.batch, s.out_channels, s.out_height, s.out_width};
    const Shape weight{s.out_channels, s.in_channels, 3, 3};
    const bool free = numbers.coin(), bias = numbers.coin(), relu = numbers.coin();
    const auto conv = [&](Direction direction) {
      const bool forward = direction == Direction::forward;
      return [&, direction, forward](DType dtype, DType result) {
        return wide().conv2d({.dtype = dtype, .result = result, .free = free, .threads = 2}, s, direction,
                             forward && bias, forward && relu);
      };
    };
    std::vector<Tensor> inputs{low(numbers, x), low(numbers, weight)};
    if (bias) inputs.push_back(low(numbers, {s.out_channels}));
    expect_rounded_float32(wide(), inputs, y, DType::bfloat16, conv(Direction::forward));
    const Tensor dy = low(numbers, y);
    expect_rounded_float32(wide(), {dy, inputs[1]}, x, DType::bfloat16, conv(Direction::grad_input));
    for (const DType result : {DType::bfloat16, DType::float32})
      expect_rounded_float32(wide(), {inputs[0], dy}, weight, result, conv(Direction::grad_weight));
  }
}

TEST_F(WideProducts, OfMatricesAreThoseOfFloat32RoundedOnce) {
  for (std::uint64_t round = 0; round < 60; ++round) {
    SCOPED_TRACE(::testing::Message() << "seed 42, round " << round);
    Numbers numbers(42, round);
    const kernels::MatmulSize size{.m = numbers.from(150, 300),
                                   .n = numbers.from(150, 300),
                                   .k = numbers.from(150, 300),
                                   .transpose_a = numbers.coin(),
                                   .transpose_b = numbers.coin()};
    const std::int64_t batch = numbers.from(1, 3);
    const bool bias = numbers.coin();
    std::vector<Tensor> inputs{low(numbers, {batch, size.m, size.k}), low(numbers, {batch, size.k, size.n})};
    if (bias) inputs.push_back(numbers.coin() ? low(numbers, {size.n}) : numbers.normal({size.n}));
    const auto make = [&](DType dtype, DType result) {
      const DType of_bias = dtype == DType::float32 || !bias ? DType::float32 : inputs[2].dtype();
      return wide().matmul({.dtype = dtype, .result = result, .threads = 2},
                           {.size = size,
                            .batch = batch,
                            .bias = bias ? std::optional(of_bias) : std::nullopt,
                            .activation = kernels::Activation::relu});
    };
    for (const DType result : {DType::bfloat16, DType::float32})
      expect_rounded_float32(wide(), inputs, {batch, size.m, size.n}, result, make);
  }
}

TEST_F(WideProducts, LeaveThinOnesToTheLibrary) {
  const auto product_of = [&](std::int64_t m) {
    return wide().matmul({.dtype = DType::bfloat16, .result = DType::bfloat16, .threads = 2},
                         {.size = {.m = m, .n = 500, .k = 400}});
  };
  EXPECT_GE(product_of(600)->scratch_bytes, 4U * 500 * 400);
  const PrimitivePtr thin = product_of(1);
  if (thin == nullptr) GTEST_SKIP() << "the library multiplies no bfloat16 here";
  EXPECT_LT(thin->scratch_bytes, 4U * 500 * 400);
}

}  // namespace
}  // namespace muster
