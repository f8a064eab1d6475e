// What a group's flight recorder tells of its calls and messages.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "muster/telemetry/telemetry.h"
#include "ranks.h"

namespace muster::collective {
namespace {
namespace recorded_calls_test {

using telemetry::Flight;
using telemetry::FlightRecord;
using telemetry::FlightState;

class RecordedOn : public ::testing::TestWithParam<Hosts> {
 protected:
  RecordedOn() {
    std::string made = testing::TempDir() + "recordedXXXXXX";
    folder_ = ::mkdtemp(made.data());
  }
  ~RecordedOn() override { std::filesystem::remove_all(folder_); }

  std::string path(std::uint32_t rank) const { return folder_ + "/" + std::to_string(rank); }
  Ranks connected(std::uint32_t count) {
    return connect_ranks(count, GetParam(), [&](std::uint32_t rank) {
      Options options = patient;
      options.recorder = telemetry::FlightRecorder::open(path(rank), {.rank = rank}).value();
      return options;
    });
  }
  Flight flight(std::uint32_t rank) const { return telemetry::read_flight(path(rank)).value(); }

  std::string folder_;
};
INSTANTIATE_TEST_SUITE_P(Layout, RecordedOn, ::testing::Values(Hosts::one, Hosts::each_its_own),
                         [](const auto& test) { return test.index == 0 ? "SharedMemory" : "Tcp"; });

TEST_P(RecordedOn, AreTheCallsOfAllRanksWithTheirSizes) {
  Ranks ranks = connected(2);
  run_threads(2, [&](std::uint32_t rank) {
    std::array<float, 3> values{};
    EXPECT_TRUE(ranks[rank]->all_reduce(values.data(), values.data(), 3, DType::float32, Reduction::max));
    EXPECT_TRUE(ranks[rank]->broadcast(values.data(), 12, 1));
  });
  for (std::uint32_t rank : {0, 1}) {
    const Flight read = flight(rank);
    ASSERT_EQ(read.groups.size(), 1u);
    EXPECT_EQ(read.groups[0].rank, rank);
    EXPECT_EQ(read.groups[0].size, 2u);
    ASSERT_EQ(read.records.size(), 2u);
    EXPECT_EQ(read.records[0].kind, CallKind::all_reduce);
    EXPECT_EQ(read.records[0].count, 3u);
    EXPECT_EQ(read.records[0].reduction, Reduction::max);
    EXPECT_EQ(read.records[0].state, FlightState::completed);
    EXPECT_EQ(read.records[1].number, 2u);
    EXPECT_EQ(read.records[1].peer, 1u);
  }
  EXPECT_EQ(flight(0).groups[0].id, flight(1).groups[0].id);
}

TEST_P(RecordedOn, AreMessagesOfBothSidesWithTheSameNumber) {
  Ranks ranks = connected(2);
  std::array<std::array<std::byte, 5>, 2> bytes{};
  run_threads(2, [&](std::uint32_t rank) {
    const std::span<std::byte> piece(bytes[rank]);
    const std::span<const std::byte> sent(piece);
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(rank == 0 ? ranks[0]->send(1, {&sent, 1}) : ranks[1]->receive(0, {&piece, 1}));
  });
  const FlightRecord sent = flight(0).records.at(1), received = flight(1).records.at(1);
  EXPECT_EQ(sent.kind, CallKind::send);
  EXPECT_EQ(received.kind, CallKind::receive);
  EXPECT_EQ(sent.number, 2u);
  EXPECT_EQ(received.number, 2u);
  EXPECT_EQ(received.count, 5u);
  EXPECT_EQ(received.state, FlightState::completed);
}

TEST_P(RecordedOn, AreTheCallInWhichARankWaitsAndItsFailure) {
  Ranks ranks = connected(2);
  std::thread waits([&] { EXPECT_FALSE(ranks[0]->barrier()); });
  const TimePoint deadline = real_clock().now() + std::chrono::seconds(30);
  while (flight(0).records.empty() && real_clock().now() < deadline) std::this_thread::yield();
  ASSERT_EQ(flight(0).records.size(), 1u);
  EXPECT_EQ(flight(0).records[0].state, FlightState::started);
  ranks[1].reset();
  waits.join();
  EXPECT_EQ(flight(0).records[0].state, FlightState::failed);
  EXPECT_EQ(flight(0).records[0].code, Code::peer_lost);
  EXPECT_TRUE(flight(1).records.empty());
}

TEST_P(RecordedOn, AreThoseOfGroupsThatAreSplitOff) {
  Ranks ranks = connected(2);
  run_threads(2, [&](std::uint32_t rank) {
    auto split = ranks[rank]->split(0);
    ASSERT_TRUE(split);
    EXPECT_TRUE((*split)->barrier());
  });
  const Flight read = flight(0);
  ASSERT_EQ(read.groups.size(), 2u);
  EXPECT_NE(read.groups[0].id, read.groups[1].id);
  EXPECT_EQ(read.records.back().kind, CallKind::barrier);
  EXPECT_EQ(read.records.back().group, read.groups[1].id);
}

}  // namespace recorded_calls_test
}  // namespace
}  // namespace muster::collective
