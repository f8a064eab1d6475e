// The primitive library against the reference kernels on random sizes, in plain formats and in its own.
#include <gtest/gtest.h>

#include <vector>

#include "oracle.h"

namespace muster {
namespace {

using kernels::BatchNormSize;

class Primitives : public testing::Test {
 protected:
  void SetUp() override {
    if (primitive_library() == nullptr) GTEST_SKIP() << "there is no primitive library here";
  }
};

TEST_F(Primitives, ConvolveAsTheReferenceDoes) {
  EXPECT_GT(convolve_as_the_reference_does(*primitive_library(), 3), 400) << "the library refuses too much";
}

TEST_F(Primitives, PoolAsTheReferenceDoes) {
  EXPECT_GT(pool_as_the_reference_does(*primitive_library(), 3), 270) << "the library refuses too much";
}

TEST_F(Primitives, NormaliseAsTheReferenceDoes) {
  const std::uint64_t seed = entropy();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (std::uint64_t number = 0; number < 60; ++number) {
    SCOPED_TRACE(testing::Message() << "number " << number);
    Numbers numbers(seed, number);
    const BatchNormSize s{.batch = numbers.from(2, 4),
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
    const auto forward = primitive_library()->batch_norm(setting, s, Direction::forward, false);
    ASSERT_NE(forward, nullptr);
    run(*primitive_library(), *forward, {x, gamma, beta, found.moving_mean, found.moving_variance},
        {found.y, found.mean, found.variance});
    const auto backward = primitive_library()->batch_norm(setting, s, Direction::grad_input, false);
    ASSERT_NE(backward, nullptr);
    run(*primitive_library(), *backward, {x, dy, gamma, expected.mean, expected.variance},
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

}  // namespace
}  // namespace muster
