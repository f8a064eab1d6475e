#include "muster/train/reducer.h"

#include <gtest/gtest.h>

#include <array>

#include "muster/train/job.h"
#include "tests/unit/base/mentions.h"

namespace muster::train {
namespace {

std::vector<std::shared_ptr<graph::Parameter>> one_parameter() {
  const std::array<float, 2> values{1, 2};
  return {std::make_shared<graph::Parameter>("fc.bias", Tensor::from<float>(values, {2}))};
}

TEST(Reducer, GivesTheGradientsBackInAProcessWithoutACluster) {
  const std::array<float, 2> values{5, 6};
  const Tensor gradient = Tensor::from<float>(values, {2});
  DistributedReducer reducer(one_parameter());
  const auto reduced = reducer.reduce(std::array{gradient});
  ASSERT_TRUE(reduced) << reduced.error().message;
  EXPECT_EQ(reduced->front().bytes(), gradient.bytes());
}

TEST(Reducer, NamesTheGradientThatDoesNotFitItsParameter) {
  DistributedReducer reducer(one_parameter());
  const auto wrong_shape = reducer.reduce(std::array{Tensor::zeros(DType::float32, {3})});
  ASSERT_FALSE(wrong_shape);
  EXPECT_THAT(wrong_shape.error().message,
              Mentions("gradient 0", "float32 (3,)", "'fc.bias'", "float32 (2,)"));
  const auto too_many =
      reducer.reduce(std::array{Tensor::zeros(DType::float32, {2}), Tensor::zeros(DType::float32, {2})});
  ASSERT_FALSE(too_many);
  EXPECT_THAT(too_many.error().message, Mentions("reducer", "1 parameters", "2 gradients"));
}

TEST(Session, SaysWhatToDoBeforeInit) {
  const auto rank = get_rank();
  ASSERT_FALSE(rank);
  EXPECT_THAT(rank.error().message, Mentions("get_rank", "cluster", "init()"));
}

TEST(Session, ReportsABadEnvironmentWithItsExitCode) {
  const auto role =
      init(FixedEnvironment(std::map<std::string, std::string, std::less<>>{{"MS_ROLE", "MS_BOSS"}}));
  ASSERT_FALSE(role);
  EXPECT_EQ(role.error().exit_code, cluster::exit_code_configuration);
  EXPECT_NE(role.error().message.find("MS_BOSS"), std::string::npos) << role.error().message;
}

TEST(Session, TheSeedIsTheUsersOnceChosen) {
  EXPECT_EQ(seed(), seed());
  set_seed(7);
  EXPECT_EQ(seed(), 7U);
}

}  // namespace
}  // namespace muster::train
