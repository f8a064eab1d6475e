// What a look at a group from outside finds, while its ranks wait for each other.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>
#include <thread>

#include "ranks.h"

namespace muster::collective {
namespace {

class UnderWayOn : public ::testing::TestWithParam<Hosts> {};
INSTANTIATE_TEST_SUITE_P(Layout, UnderWayOn, ::testing::Values(Hosts::one, Hosts::each_its_own),
                         [](const auto& test) { return test.index == 0 ? "SharedMemory" : "Tcp"; });

// Looks until the group is in `wanted`; false when it never is.
bool comes_to(const Communicator& group, CallKind wanted) {
  const TimePoint deadline = real_clock().now() + std::chrono::seconds(30);
  while (group.in_flight_call().kind != wanted) {
    if (real_clock().now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_P(UnderWayOn, IsTheCallThatWaitsAndItsNumber) {
  const Ranks ranks = connect_ranks(2, GetParam(), patient);
  EXPECT_EQ(ranks[0]->in_flight_call().kind, CallKind::none);
  EXPECT_EQ(ranks[0]->in_flight_call().finished, 0u);
  run_threads(2, [&](std::uint32_t rank) { EXPECT_TRUE(ranks[rank]->barrier()); });
  std::thread waits([&] {
    float value = 1;
    EXPECT_TRUE(ranks[0]->all_reduce(&value, &value, 1, DType::float32, Reduction::sum));
  });
  EXPECT_TRUE(comes_to(*ranks[0], CallKind::all_reduce));
  EXPECT_EQ(ranks[0]->in_flight_call().number, 2u);
  EXPECT_EQ(ranks[0]->in_flight_call().finished, 1u);
  EXPECT_EQ(ranks[1]->in_flight_call().kind, CallKind::none) << "it has not come yet";
  float value = 1;
  EXPECT_TRUE(ranks[1]->all_reduce(&value, &value, 1, DType::float32, Reduction::sum));
  waits.join();
  EXPECT_EQ(ranks[0]->in_flight_call().kind, CallKind::none);
  EXPECT_EQ(ranks[0]->in_flight_call().finished, 2u);
}

TEST_P(UnderWayOn, IsTheRankThatAMessageComesFrom) {
  const Ranks ranks = connect_ranks(2, GetParam(), patient);
  std::array<std::byte, 8> heard{};
  std::thread waits([&] {
    const std::span<std::byte> piece(heard);
    EXPECT_TRUE(ranks[0]->receive(1, {&piece, 1}));
  });
  EXPECT_TRUE(comes_to(*ranks[0], CallKind::receive));
  EXPECT_EQ(ranks[0]->in_flight_call().number, 1u);
  const std::array<std::byte, 8> said{};
  const std::span<const std::byte> piece(said);
  EXPECT_TRUE(ranks[1]->send(0, {&piece, 1}));
  waits.join();
  EXPECT_EQ(ranks[0]->in_flight_call().kind, CallKind::none);
}

}  // namespace
}  // namespace muster::collective
