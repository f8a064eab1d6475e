#include "muster/train/context.h"

#include <gtest/gtest.h>

#include "tests/unit/base/mentions.h"

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
  EXPECT_THAT(set_buckets({.bytes = 0}).error().message, Mentions("bucket", "0 bytes", "choose 1"));
  EXPECT_THAT(set_buckets({.splits = {3, 3}}).error().message,
              Mentions("3 after", "after 3", "ascending", "from 1"));
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
  EXPECT_THAT(parallel_mode_from_string("parallel").error().message,
              Mentions("parallel_mode 'parallel'", "known", "'stand_alone'", "'data_parallel'"));
}

TEST(Context, HasTheCpuOnly) {
  EXPECT_TRUE(check_device_target("CPU"));
  EXPECT_EQ(check_device_target("GPU").error().code, Code::not_provided);
  EXPECT_EQ(check_device_target("TPU").error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace muster::train
