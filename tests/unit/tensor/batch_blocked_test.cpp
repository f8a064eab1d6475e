// Our own kernels for images of few channels against the reference, for each set of instructions that this
// processor has.
#include "muster/tensor/batch_blocked/batch_blocked.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "oracle.h"

namespace muster {
namespace {

using kernels::Conv2dSize;

class BatchBlocked : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > processor_isa()) GTEST_SKIP() << "this processor has no " << to_string(GetParam());
  }
  const PrimitiveLibrary& library() const { return batch_blocked_library(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Instructions, BatchBlocked, ::testing::Values(Isa::none, Isa::avx2, Isa::avx512),
                         [](const auto& param_info) { return std::string(to_string(param_info.param)); });

TEST_P(BatchBlocked, ConvolveAsTheReferenceDoes) {
  EXPECT_GT(convolve_as_the_reference_does(library(), 35), 200);  // none for groups
}

TEST_P(BatchBlocked, PoolAsTheReferenceDoes) { EXPECT_EQ(pool_as_the_reference_does(library(), 35), 320); }

TEST_P(BatchBlocked, NormaliseAsTheReferenceDoes) { normalise_as_the_reference_does(library(), 35); }

TEST_P(BatchBlocked, NormaliseWithReluAsTheReferenceDoes) {
  for (const std::int64_t batch : {3, 16, 21}) {
    Numbers numbers(5, static_cast<std::uint64_t>(batch));
    const kernels::BatchNormSize s{.batch = batch, .channels = 5, .inner = 7, .training = true};
    const Tensor x = numbers.normal({batch, 5, 7}), dy = numbers.normal(x.shape());
    const Tensor gamma = numbers.normal({5}), beta = numbers.normal({5});
    struct Results {
      Tensor moving_mean, moving_variance, y, mean, variance, mask, dx, dgamma, dbeta;
    };
    const auto fresh = [&] {
      const auto channels = [] { return Tensor::zeros(DType::float32, {5}); };
      return Results{channels(),    channels(), zeros_like(x),
                     channels(),    channels(), Tensor::zeros(DType::uint8, x.shape()),
                     zeros_like(x), channels(), channels()};
    };
    const Results expected = fresh(), found = fresh();
    kernels::batch_norm<float>(s, {.x = x.data<float>(),
                                   .gamma = gamma.data<float>(),
                                   .beta = beta.data<float>(),
                                   .moving_mean = expected.moving_mean.data<float>(),
                                   .moving_variance = expected.moving_variance.data<float>(),
                                   .y = expected.y.data<float>(),
                                   .mean = expected.mean.data<float>(),
                                   .variance = expected.variance.data<float>(),
                                   .mask = expected.mask.data<std::uint8_t>()});
    kernels::batch_norm_grad<float>(s, {.x = x.data<float>(),
                                        .dy = dy.data<float>(),
                                        .gamma = gamma.data<float>(),
                                        .mean = expected.mean.data<float>(),
                                        .variance = expected.variance.data<float>(),
                                        .mask = expected.mask.data<std::uint8_t>(),
                                        .dx = expected.dx.data<float>(),
                                        .dgamma = expected.dgamma.data<float>(),
                                        .dbeta = expected.dbeta.data<float>()});
    const std::vector<FormatPtr> formats(6);
    const PrimitiveSetting setting{.formats = formats, .free = true};
    run(library(), *library().batch_norm(setting, s, Direction::forward, true),
        {x, gamma, beta, found.moving_mean, found.moving_variance},
        {found.y, found.mean, found.variance, found.mask});
    run(library(), *library().batch_norm(setting, s, Direction::grad_input, true),
        {x, dy, gamma, expected.mean, expected.variance, expected.mask},
        {found.dx, found.dgamma, found.dbeta});
    expect_near(found.y, expected.y, 100, "y");
    EXPECT_EQ(std::memcmp(found.mask.bytes(), expected.mask.bytes(), found.mask.size_bytes()), 0);
    expect_near(found.dx, expected.dx, 1000, "dx");
    expect_near(found.dgamma, expected.dgamma, 1000, "dgamma");
    expect_near(found.dbeta, expected.dbeta, 1000, "dbeta");
  }
}

// So large that the weight's gradient takes its rows in several bands.
TEST_P(BatchBlocked, TakeLargeImagesInBands) {
  const Conv2dSize s{.batch = 17,
                     .in_channels = 1,
                     .in_height = 9,
                     .in_width = 70,
                     .out_channels = 6,
                     .out_height = 7,
                     .out_width = 68,
                     .kernel_height = 3,
                     .kernel_width = 3};
  Numbers numbers(6, 1);
  const Tensor x = numbers.normal({17, 1, 9, 70}), dy = numbers.normal({17, 6, 7, 68});
  const Tensor found = Tensor::zeros(DType::float32, {6, 1, 3, 3}), expected = zeros_like(found);
  kernels::conv2d_grad_weight<float>(
      s, {.x = x.data<float>(), .dy = dy.data<float>(), .dweight = expected.data<float>()});
  const std::vector<FormatPtr> formats(2);
  run(library(),
      *library().conv2d({.formats = formats, .free = true}, s, Direction::grad_weight, false, false), {x, dy},
      {found});
  expect_near(found, expected, 17 * 7 * 68, "dweight");
}

TEST_P(BatchBlocked, PoolTheFirstOfEqualsAndTheFirstNaN) {
  const kernels::Pool2dSize s{.batch = 1,
                              .channels = 1,
                              .in_height = 2,
                              .in_width = 6,
                              .out_height = 1,
                              .out_width = 2,
                              .kernel_height = 2,
                              .kernel_width = 3,
                              .stride_height = 2,
                              .stride_width = 3};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values{1, 2, 2, 7, nan, 9, 2, 0, 2, nan, 8, nan};
  const Tensor x = Tensor::from<float>(values, {1, 1, 2, 6});
  const Tensor y(DType::float32, {1, 1, 1, 2}), positions(DType::uint8, {1, 1, 1, 2});
  const std::vector<FormatPtr> formats(1);
  run(library(), *library().max_pool2d({.formats = formats, .free = true}, s, Direction::forward), {x},
      {y, positions});
  EXPECT_EQ(y.data<float>()[0], 2);
  EXPECT_EQ(positions.data<std::uint8_t>()[0], 1);
  EXPECT_TRUE(std::isnan(y.data<float>()[1]));
  EXPECT_EQ(positions.data<std::uint8_t>()[1], 1);
}

// Three channels to seven, of 21 samples: 11 lanes of the second block are padding.
constexpr Conv2dSize some_size{.batch = 21,
                               .in_channels = 3,
                               .in_height = 9,
                               .in_width = 11,
                               .out_channels = 7,
                               .out_height = 9,
                               .out_width = 11,
                               .kernel_height = 3,
                               .kernel_width = 3,
                               .pad_top = 1,
                               .pad_bottom = 1,
                               .pad_left = 1,
                               .pad_right = 1};

Tensor batch_blocked_of(const PrimitiveLibrary& library, const Tensor& plain, const FormatPtr& format) {
  return reordered(library, plain, nullptr, format, plain);
}

TEST_P(BatchBlocked, KeepZerosWhereThereIsNoSample) {
  Numbers numbers(1, 1);
  const std::vector<FormatPtr> formats(3);
  const auto forward =
      library().conv2d({.formats = formats, .free = true}, some_size, Direction::forward, true, false);
  const Tensor x = batch_blocked_of(library(), numbers.normal({21, 3, 9, 11}), forward->input_formats[0]);
  const Tensor weight = numbers.normal({7, 3, 3, 3}), bias = numbers.normal({7});
  const FormatPtr y_format = forward->output_formats[0];
  const Tensor y(DType::float32, {static_cast<std::int64_t>(y_format->size_bytes() / sizeof(float))});
  std::byte* const in[]{x.bytes(), weight.bytes(), bias.bytes()};
  std::byte* const out[]{y.bytes()};
  const auto scratch = Buffer::allocate(forward->scratch_bytes);
  ASSERT_TRUE(forward->run(in, out, scratch->data(), 1));
  constexpr std::int64_t block = 7 * 9 * 11 * 16;
  ASSERT_EQ(y.elements(), 2 * block);
  for (std::int64_t i = 0; i < block; ++i) {
    ASSERT_NE(y.data<float>()[i], 0) << "element " << i << " of the first block";
    ASSERT_EQ(y.data<float>()[block + i] == 0, i % 16 >= 5) << "element " << i << " of the last block";
  }
}

TEST_P(BatchBlocked, GiveTheSameBitsOnAnyNumberOfThreads) {
  Numbers numbers(2, 1);
  const Tensor x = numbers.normal({21, 3, 9, 11}), weight = numbers.normal({7, 3, 3, 3});
  const Tensor dy = numbers.normal({21, 7, 9, 11});
  const std::vector<FormatPtr> formats(3);
  const auto all = [&](int threads) {
    const PrimitiveSetting setting{.formats = formats, .free = true, .threads = threads};
    const std::vector<Tensor> found{zeros_like(dy), zeros_like(x), zeros_like(weight)};
    const auto make = [&](Direction direction) {
      return library().conv2d(setting, some_size, direction, false, false);
    };
    run(library(), *make(Direction::forward), {x, weight}, {found[0]}, threads);
    run(library(), *make(Direction::grad_input), {dy, weight}, {found[1]}, threads);
    run(library(), *make(Direction::grad_weight), {x, dy}, {found[2]}, threads);
    return found;
  };
  const std::vector<Tensor> expected = all(1);
  for (const int threads : {2, 3, 5}) {
    const std::vector<Tensor> found = all(threads);
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(std::memcmp(found[i].bytes(), expected[i].bytes(), expected[i].size_bytes()), 0)
          << "result " << i << ", " << threads << " threads";
  }
}

TEST_P(BatchBlocked, ReorderBackToWhatCame) {
  for (const std::int64_t batch : {1, 15, 16, 17, 40})
    for (const std::int64_t inner : {1, 7, 16, 50}) {
      Numbers numbers(3, static_cast<std::uint64_t>(batch * 100 + inner));
      const Conv2dSize size{.batch = batch,
                            .in_channels = 1,
                            .in_height = 1,
                            .in_width = inner,
                            .out_channels = 1,
                            .out_height = 1,
                            .out_width = inner};
      const std::vector<FormatPtr> formats(2);
      const FormatPtr format =
          library()
              .conv2d({.formats = formats, .free = true}, size, Direction::forward, false, false)
              ->input_formats[0];
      EXPECT_TRUE(is_batch_blocked(format));
      const Tensor plain = numbers.normal({batch, 1, 1, inner});
      const Tensor back =
          reordered(library(), batch_blocked_of(library(), plain, format), format, nullptr, plain);
      EXPECT_EQ(std::memcmp(back.bytes(), plain.bytes(), plain.size_bytes()), 0) << batch << " x " << inner;
    }
}

TEST(BatchBlockedOf, ChannelsAddUpAsTheReferenceDoes) {
  for (const std::int64_t batch : {3, 16, 37}) {
    Numbers numbers(4, static_cast<std::uint64_t>(batch));
    const Tensor x = numbers.normal({batch, 5, 13, 7});
    const Tensor found(DType::float32, {5}), expected(DType::float32, {5});
    kernels::channel_sum(x.data<float>(), expected.data<float>(), batch, 5, 13 * 7);
    const std::vector<FormatPtr> formats(1);
    const auto sum = batch_blocked_channel_sum({.formats = formats, .free = true}, x.shape());
    run(batch_blocked_library(), *sum, {x}, {found});
    for (int c = 0; c < 5; ++c) EXPECT_NEAR(found.data<float>()[c], expected.data<float>()[c], 1e-4) << c;
  }
}

TEST(BatchBlockedOf, GroupsAreLeftToOthers) {
  Conv2dSize size = some_size;
  size.groups = 2;
  EXPECT_EQ(batch_blocked_library().conv2d({}, size, Direction::forward, false, false), nullptr);
}

TEST(BatchBlockedOf, FormatsOfOtherLibrariesDiffer) {
  if (primitive_library() == nullptr) GTEST_SKIP() << "there is no primitive library here";
  Conv2dSize size = some_size;
  size.in_channels = size.out_channels = 32;
  const std::vector<FormatPtr> formats(2);
  const PrimitiveSetting setting{.formats = formats, .free = true};
  const auto blocked = primitive_library()->conv2d(setting, size, Direction::forward, false, false);
  const auto lanes = batch_blocked_library().conv2d(setting, size, Direction::forward, false, false);
  ASSERT_NE(blocked, nullptr);
  ASSERT_NE(blocked->output_formats[0], nullptr);
  EXPECT_FALSE(is_batch_blocked(blocked->output_formats[0]));
  EXPECT_FALSE(same_format(blocked->output_formats[0], lanes->output_formats[0]));
  EXPECT_FALSE(same_format(lanes->output_formats[0], blocked->output_formats[0]));
  size.out_channels = 16;
  const auto fewer = batch_blocked_library().conv2d(setting, size, Direction::forward, false, false);
  EXPECT_TRUE(same_format(lanes->input_formats[0], fewer->input_formats[0]));
  EXPECT_FALSE(same_format(lanes->output_formats[0], fewer->output_formats[0]));
}

}  // namespace
}  // namespace muster
