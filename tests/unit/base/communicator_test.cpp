#include "muster/base/communicator.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/base/mentions.h"

namespace muster {
namespace {

TEST(ACommunicator, NamesEveryCallThatItDoesNotProvide) {
  class OnlyRanks final : public Communicator {
    std::uint32_t rank() const override { return 0; }
    std::uint32_t size() const override { return 2; }
  } only_ranks;
  Communicator& group = only_ranks;
  float value = 1;
  EXPECT_THAT(group.all_reduce(&value, &value, 1, DType::float32, Reduction::sum).error().message,
              Mentions("group", "all_reduce"));
  EXPECT_EQ(group.broadcast(&value, sizeof value, 0).error().message, "this group cannot broadcast");
  EXPECT_THAT(group.all_gather(&value, &value, 0).error().message, Mentions("group", "all_gather"));
  EXPECT_THAT(group.barrier().error().message, Mentions("wait", "barrier"));
  EXPECT_THAT(group.reduce(&value, &value, 1, DType::float32, Reduction::sum, 0).error().message,
              Mentions("group", "reduce"));
  EXPECT_THAT(group.reduce_scatter(&value, &value, 1, DType::float32, Reduction::sum).error().message,
              Mentions("group", "reduce_scatter"));
  EXPECT_THAT(group.all_to_all({}, {}).error().message, Mentions("group", "all_to_all"));
  EXPECT_THAT(group.all_to_all_uneven({}, {}).error().message, Mentions("all_to_all", "any sizes"));
  EXPECT_THAT(group.gather({}, {}, 0).error().message, Mentions("group", "gather"));
  EXPECT_THAT(group.scatter({}, {}, 0).error().message, Mentions("group", "scatter"));
  EXPECT_EQ(group.split(0).error().message, "this group cannot split");
  EXPECT_THAT(group.send(1, {}).error().message, Mentions("send", "worker 1"));
  EXPECT_THAT(group.receive(1, {}).error().message, Mentions("receive", "worker 1"));
  EXPECT_THAT(group.shared_buffer(1).error().message, Mentions("share", "memory"));
  EXPECT_FALSE(group.shares_memory());
  EXPECT_EQ(group.in_flight_call().kind, CallKind::none);
}

TEST(AReduction, IsReadFromTheNameThatItPrints) {
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(last_reduction); ++i) {
    const auto reduction = static_cast<Reduction>(i);
    EXPECT_EQ(reduction_from_string(to_string(reduction)), reduction);
  }
  EXPECT_FALSE(reduction_from_string("median"));
}

TEST(AReduction, IsThereForEveryDtypeButBitsOfFloatsAndMeansOfBools) {
  EXPECT_TRUE(can_reduce(DType::bfloat16, Reduction::product));
  EXPECT_FALSE(can_reduce(DType::float16, Reduction::band));
  EXPECT_TRUE(can_reduce(DType::bool_, Reduction::bxor));
  EXPECT_FALSE(can_reduce(DType::bool_, Reduction::mean));
}

TEST(ACallKind, PrintsAsItsFunctionIsCalled) {
  EXPECT_EQ(to_string(CallKind::none), "");
  EXPECT_EQ(to_string(CallKind::all_reduce), "all_reduce");
  EXPECT_EQ(to_string(CallKind::barrier), "barrier");
  EXPECT_EQ(to_string(CallKind::receive), "receive");
  EXPECT_EQ(to_string(CallKind::reduce_scatter), "reduce_scatter");
  EXPECT_EQ(to_string(CallKind::scatter), "scatter");
}

}  // namespace
}  // namespace muster
