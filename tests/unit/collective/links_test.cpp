// Connections between hosts that break while both ranks live: they are made again, and nobody who calls
// notices more than the time that it takes.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "muster/collective/hello.h"
#include "relayed.h"
#include "tests/unit/base/mentions.h"

namespace muster::collective {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Numbers whose sum depends on the order in which they are added.
std::vector<float> values_of(std::uint32_t rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::sqrt(static_cast<float>((i * 2654435761u + rank * 97) % 1'000'003)) - 500.0f;
  return values;
}

std::vector<float> sum_of(std::uint32_t ranks, std::size_t count) {
  std::vector<float> sum = values_of(0, count);
  for (std::uint32_t rank = 1; rank < ranks; ++rank) {
    const std::vector<float> values = values_of(rank, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
  }
  return sum;
}

class Links : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    seed_ = entropy();
    fmt::print("seed {}\n", seed_);
  }
  std::uint64_t seed_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Channel, Links, ::testing::Bool(),
                         [](const auto& secured) { return secured.param ? "Tls" : "Plain"; });

TEST_P(Links, ThatBreakInAReductionAreMadeAgainAndKeepItsBits) {
  constexpr std::uint32_t ranks = 2;
  const std::size_t count = (GetParam() ? 4 << 20 : 16 << 20) + 5;
  ::testing::internal::CaptureStderr();
  {
    Relayed group(ranks, lives_of(seed_, 1 << 20, 12 << 20, 24), options_of(GetParam()));
    const std::vector<float> sum = sum_of(ranks, count);
    run_threads(ranks, [&](std::uint32_t rank) {
      std::vector<float> values = values_of(rank, count);
      for (int call = 0; call < 2; ++call) {
        std::vector<float> out(call == 0 ? count : 0);
        float* into = call == 0 ? out.data() : values.data();  // and once in place
        const auto done =
            group.comms[rank]->all_reduce(values.data(), into, count, DType::float32, Reduction::sum);
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_TRUE(std::equal(sum.begin(), sum.end(), into)) << "rank " << rank;
      }
    });
    EXPECT_GE(group.cuts(), 6);
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("the connection to rank 0 ("), HasSubstr("the connection to rank 1 ("),
                    HasSubstr("was made again after")));
}

// A rank that waits for a neighbour of its host waits for no connection, and its acceptor is served all the
// same.
TEST_P(Links, ThatBreakAnywhereInManySmallCallsLoseNone) {
  for (const Hosts hosts : {Hosts::each_its_own, Hosts::two_interleaved}) {
    constexpr std::uint32_t ranks = 4;
    Relayed group(ranks, lives_of(seed_, 6000, 40'000, 90), options_of(GetParam()), hosts);
    run_threads(ranks, [&](std::uint32_t rank) {
      Communicator& comm = *group.comms[rank];
      for (std::uint64_t round = 0; round < 100; ++round) {
        const std::size_t count = 1 + RandomStream(seed_, 1).below(round, 3000);
        std::vector<float> values = values_of(rank, count);
        auto done = comm.all_reduce(values.data(), values.data(), count, DType::float32, Reduction::sum);
        ASSERT_TRUE(done) << done.error().message;
        ASSERT_EQ(values, sum_of(ranks, count)) << round;
        const auto root = static_cast<std::uint32_t>(round % ranks);
        std::vector<float> told = values_of(rank, count);
        ASSERT_TRUE(comm.broadcast(told.data(), count * sizeof(float), root));
        ASSERT_EQ(told, values_of(root, count)) << round;
        done = comm.barrier();
        ASSERT_TRUE(done) << done.error().message;
      }
    });
    EXPECT_GE(group.cuts(), 20);
  }
}

TEST_P(Links, ThatBreakInABroadcastOrAGatheringAreMadeAgain) {
  constexpr std::uint32_t ranks = 3;
  constexpr std::size_t count = 3 << 20;
  Relayed group(ranks, lives_of(seed_, 1 << 20, 9 << 20, 20), options_of(GetParam()));
  run_threads(ranks, [&](std::uint32_t rank) {
    Communicator& comm = *group.comms[rank];
    std::vector<float> told = values_of(rank, count), all(ranks * count);
    const auto done = comm.broadcast(told.data(), count * sizeof(float), 1);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(told, values_of(1, count));
    std::fill(told.begin(), told.end(), static_cast<float>(rank));
    ASSERT_TRUE(comm.all_gather(told.data(), all.data(), count * sizeof(float)));
    for (std::uint32_t each = 0; each < ranks; ++each)
      EXPECT_EQ(
          std::count(all.begin() + each * count, all.begin() + (each + 1) * count, static_cast<float>(each)),
          count);
  });
  EXPECT_GE(group.cuts(), 3);
}

// One side learns of it and the other does not, or both do, while nobody is in a call or one of them is.
TEST_P(Links, ThatBreakBetweenCallsAreMadeAgainWhoeverNoticed) {
  Relayed group(
      2, [] { return std::nullopt; }, options_of(GetParam()));
  const auto both_reduce = [&](float step) {
    run_threads(2, [&](std::uint32_t rank) {
      std::vector<float> values(100'000, step + static_cast<float>(rank));
      const auto done = group.comms[rank]->all_reduce(values.data(), values.data(), values.size(),
                                                      DType::float32, Reduction::sum);
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_EQ(values, std::vector<float>(values.size(), 2 * step + 1));
    });
  };
  float step = 0;
  for (const Relay::Side side : {Relay::Side::caller, Relay::Side::called, Relay::Side::both}) {
    both_reduce(++step);
    group.relays[0].cut(side);
    both_reduce(++step);
    for (const std::uint32_t waiting : {0u, 1u}) {
      Result<> done;
      std::thread early([&] { done = group.comms[waiting]->barrier(); });
      while (group.comms[waiting]->in_flight_call().kind != CallKind::barrier) std::this_thread::yield();
      group.relays[0].cut(side);
      const auto late = group.comms[1 - waiting]->barrier();
      early.join();
      EXPECT_TRUE(done) << done.error().message;
      EXPECT_TRUE(late) << late.error().message;
    }
  }
}

// The connection breaks and the group ends: that is told at once, not waited for.
TEST_P(Links, ThatBreakWhileTheGroupEndsHoldNobodyUp) {
  Ranks comms = connect_ranks(3, Hosts::each_its_own, options_of(GetParam()));
  const TimePoint start = real_clock().now();
  std::vector<std::thread> waiters;
  std::array<Result<>, 3> done;
  for (const std::uint32_t rank : {1u, 2u})
    waiters.emplace_back([&, rank] { done[rank] = comms[rank]->barrier(); });
  comms[0]->leave({Code::peer_lost, "worker 0 has left"});
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_LT(real_clock().now() - start, soon);
  for (const std::uint32_t rank : {1u, 2u}) {
    ASSERT_FALSE(done[rank]);
    EXPECT_EQ(done[rank].error().code, Code::peer_lost);
    EXPECT_THAT(done[rank].error().message, Mentions("gone", "closed"));
  }
}

// The listener of an epoch stays open: who comes to it in the middle is looked at as at the beginning.
TEST(LinksOfAGroup, AreNotDisturbedByUnauthorizedPeersInTheMiddle) {
  Prepared prepared = prepare(2, Hosts::each_its_own);
  const std::vector<Endpoint> endpoints = prepared.endpoints;
  Ranks comms(2);
  run_threads(2, [&](std::uint32_t rank) {
    comms[rank] = connect({.epoch = 3, .job_id = 7, .rank = rank, .endpoints = endpoints},
                          std::move(prepared.listeners[rank]), patient)
                      .value();
  });
  const net::Wait wait{.deadline = real_clock().now() + std::chrono::seconds(30)};
  const auto say = [&](const Hello& hello) {
    auto socket = net::Socket::connect({"127.0.0.1", endpoints[0].port}, wait).value();
    EXPECT_TRUE(socket.send_all(encode_hello(hello), wait));
    return socket;
  };
  const auto answer_to = [&](net::Socket& socket) {
    std::vector<std::byte> bytes(net::frame_header_size_bytes);
    EXPECT_TRUE(socket.receive_all(bytes, wait));
    const auto header =
        net::decode_header(std::span(bytes).first<net::frame_header_size_bytes>(), 1024).value();
    bytes.resize(header.payload_size_bytes);
    EXPECT_TRUE(socket.receive_all(bytes, wait));
    return check_welcome({header, bytes}, {.epoch = 3, .job_id = 7}, "rank 0").error().message;
  };
  Hello hello{.origin = {.epoch = 3, .job_id = 7},
              .from = 1,
              .to = 0,
              .size = 2,
              .intent = Intent::resume,
              .generation = 1};
  Result<> done;
  std::thread waiter([&] { done = comms[0]->barrier(); });
  Hello duplicate = hello, first = hello, of_calls = hello;
  duplicate.origin.epoch = 2;
  first.intent = Intent::join;
  of_calls.intent = Intent::ask_for_reconnect;
  auto old = say(duplicate), late = say(first), wrong = say(of_calls);
  EXPECT_THAT(answer_to(old), Mentions("epoch 2", "epoch 3"));
  EXPECT_THAT(answer_to(late), Mentions("rank 1", "awaited", "rank 0"));
  EXPECT_THAT(answer_to(wrong), Mentions("rank 1", "awaited", "rank 0"));
  const auto other = comms[1]->barrier();
  waiter.join();
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_TRUE(other) << other.error().message;
}

}  // namespace
}  // namespace muster::collective
