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
  EXPECT_EQ(group.split(0).error().message, "this group cannot split");
  EXPECT_THAT(group.send(1, {}).error().message, Mentions("send", "worker 1"));
  EXPECT_THAT(group.receive(1, {}).error().message, Mentions("receive", "worker 1"));
  EXPECT_THAT(group.shared_buffer(1).error().message, Mentions("share", "memory"));
  EXPECT_FALSE(group.shares_memory());
  EXPECT_EQ(group.in_flight_call().kind, CallKind::none);
}

TEST(AReduction, IsReadFromTheNameThatItPrints) {
  for (const Reduction reduction : {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min})
    EXPECT_EQ(reduction_from_string(to_string(reduction)), reduction);
  EXPECT_FALSE(reduction_from_string("product"));
}

TEST(ACallKind, PrintsAsItsFunctionIsCalled) {
  EXPECT_EQ(to_string(CallKind::none), "");
  EXPECT_EQ(to_string(CallKind::all_reduce), "all_reduce");
  EXPECT_EQ(to_string(CallKind::barrier), "barrier");
  EXPECT_EQ(to_string(CallKind::receive), "receive");
}

}  // namespace
}  // namespace muster
