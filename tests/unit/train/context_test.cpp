#include "muster/train/context.h"

#include <gtest/gtest.h>

namespace muster::train {
namespace {

TEST(Context, BecomesANewVersionOnlyWhenSomethingChanges) {
  reset_parallel_context();
  const std::uint64_t before = context().version;
  set_gradients_mean(false);
  EXPECT_EQ(context().version, before);
  set_gradients_mean(true);
  EXPECT_GT(context().version, before);
  reset_parallel_context();
  EXPECT_FALSE(context().gradients_mean);
  EXPECT_GT(context().version, before + 1);
}

TEST(Context, TakesOnlyBucketsThatCanBe) {
  reset_parallel_context();
  EXPECT_EQ(set_buckets({.bytes = 0}).error().message,
            "a bucket of 0 bytes holds no gradient: choose 1 or more");
  EXPECT_EQ(set_buckets({.splits = {3, 3}}).error().message,
            "gradients cannot be split before 3 after 3: give ascending positions from 1");
  EXPECT_FALSE(set_buckets({.splits = {0, 3}}));
  EXPECT_EQ(context().buckets, nn::Buckets{});
  const std::uint64_t before = context().version;
  EXPECT_TRUE(set_buckets({.splits = {2, 5}}));
  EXPECT_GT(context().version, before);
  reset_parallel_context();
  EXPECT_EQ(context().buckets, nn::Buckets{});
}

TEST(Context, ListsTheChoicesForAParallelModeItDoesNotHave) {
  EXPECT_EQ(parallel_mode_from_string("data_parallel"), ParallelMode::data_parallel);
  EXPECT_EQ(parallel_mode_from_string("auto_parallel").error().code, Code::not_provided);
  EXPECT_EQ(parallel_mode_from_string("parallel").error().message,
            "parallel_mode 'parallel' is not known; choose 'stand_alone' or 'data_parallel'");
}

TEST(Context, HasTheCpuOnly) {
  EXPECT_TRUE(check_device_target("CPU"));
  EXPECT_EQ(check_device_target("GPU").error().code, Code::not_provided);
  EXPECT_EQ(check_device_target("TPU").error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace muster::train
