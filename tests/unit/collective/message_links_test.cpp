// Connections for messages that break while both ranks live: they are made again, and no message is lost.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "relayed.h"

namespace muster::collective {
namespace {
namespace message_links_test {

using ::testing::HasSubstr;

void send(Communicator& from, std::uint32_t to, const Bytes& bytes) {
  const std::span<const std::byte> piece(bytes);
  const auto done = from.send(to, {&piece, 1});
  ASSERT_TRUE(done) << done.error().message;
}

void receive(Communicator& to, std::uint32_t from, Bytes& bytes) {
  const std::span<std::byte> piece(bytes);
  const auto done = to.receive(from, {&piece, 1});
  ASSERT_TRUE(done) << done.error().message;
}

void expect(Communicator& to, std::uint32_t from, const Bytes& bytes) {
  Bytes received(bytes.size());
  receive(to, from, received);
  ASSERT_TRUE(received == bytes) << bytes.size() << " bytes from rank " << from;
}

std::size_t resident_mib() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) >> 20;
}

class MessageLinks : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    seed_ = entropy();
    fmt::print("seed {}\n", seed_);
  }
  std::uint64_t seed_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Channel, MessageLinks, ::testing::Bool(),
                         [](const auto& secured) { return secured.param ? "Tls" : "Plain"; });

// In any total order, whoever waits for whom, of sizes that are copied and of sizes that are not.
TEST_P(MessageLinks, ThatBreakAnywhereLoseNone) {
  constexpr std::uint32_t ranks = 4;
  for (const Hosts hosts : {Hosts::each_its_own, Hosts::two_interleaved}) {
    Relayed group(ranks, lives_of(seed_, 2000, 3 << 20, 60), options_of(GetParam()), hosts);
    const RandomStream random(seed_, 3);
    struct Step {
      std::uint32_t from, to;
      std::size_t size;
    };
    std::vector<Step> steps(400);
    std::uint64_t drawn = 0;
    const auto below = [&](std::uint64_t limit) { return random.below(drawn++, limit); };
    for (Step& step : steps) {
      step.from = static_cast<std::uint32_t>(below(ranks));
      step.to = static_cast<std::uint32_t>((step.from + 1 + below(ranks - 1)) % ranks);
      step.size = below(std::uint64_t{1} << below(23));
    }
    run_threads(ranks, [&](std::uint32_t rank) {
      for (std::size_t i = 0; i < steps.size() && !HasFatalFailure(); ++i) {
        const Step& step = steps[i];
        if (step.from == rank) send(*group.comms[rank], step.to, bytes_of(seed_, i, step.size));
        if (step.to == rank) expect(*group.comms[rank], step.from, bytes_of(seed_, i, step.size));
      }
    });
    EXPECT_GE(group.cuts(), 10);
  }
}

// Whoever sends computes afterwards, and calls nothing more: what was lost on the way is sent again all the
// same.
TEST_P(MessageLinks, ThatBreakAfterTheLastMessageAreMadeAgainByWhoIsIdle) {
  for (const std::uint32_t sender : {0u, 1u})
    for (const bool receiver_waits : {false, true}) {
      const std::uint32_t receiver = 1 - sender;
      Relayed group(
          2, [] { return std::nullopt; }, options_of(GetParam()));
      const Bytes bytes = bytes_of(seed_, sender, 200'000);
      for (int round = 0; round < 5; ++round) {
        std::thread early;
        if (receiver_waits) {
          early = std::thread([&] { expect(*group.comms[receiver], sender, bytes); });
          while (group.comms[receiver]->in_flight_call().kind != CallKind::receive) std::this_thread::yield();
        }
        send(*group.comms[sender], receiver, bytes);
        group.relays[0].cut(Relay::Side::both);
        if (receiver_waits)
          early.join();
        else
          expect(*group.comms[receiver], sender, bytes);
      }
    }
}

// One side learns of it, the other one does not: until the next message at the latest.
TEST_P(MessageLinks, ThatBreakForOneSideAreMadeAgain) {
  for (const Relay::Side side : {Relay::Side::caller, Relay::Side::called})
    for (const std::uint32_t sender : {0u, 1u}) {
      Relayed group(
          2, [] { return std::nullopt; }, options_of(GetParam()));
      const Bytes bytes = bytes_of(seed_, sender, 100'000);
      for (int round = 0; round < 5; ++round) {
        send(*group.comms[sender], 1 - sender, bytes);
        group.relays[0].cut(side);
        run_threads(2, [&](std::uint32_t rank) {
          if (rank == sender)
            send(*group.comms[rank], 1 - sender, bytes);
          else
            for (int message = 0; message < 2; ++message) expect(*group.comms[rank], sender, bytes);
        });
      }
    }
}

TEST_P(MessageLinks, SayThatTheyWereMadeAgain) {
  ::testing::internal::CaptureStderr();
  {
    Relayed group(2, lives_of(seed_, 1 << 20, 2 << 20, 6), options_of(GetParam()));
    run_threads(2, [&](std::uint32_t rank) {
      const Bytes bytes = bytes_of(seed_, 1, 6 << 20);
      if (rank == 0)
        send(*group.comms[0], 1, bytes);
      else
        expect(*group.comms[1], 0, bytes);
    });
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("was made again after"));
}

// A call that is under way serves the acceptor, also for those who come for the sake of messages.
TEST_P(MessageLinks, AreMadeAgainDuringACollectiveCall) {
  Relayed group(
      3, [] { return std::nullopt; }, options_of(GetParam()));
  const Bytes bytes = bytes_of(seed_, 0, 200'000);
  Result<> done;
  std::thread early([&] { done = group.comms[0]->barrier(); });
  while (group.comms[0]->in_flight_call().kind != CallKind::barrier) std::this_thread::yield();
  send(*group.comms[0], 1, bytes);
  group.relays[0].cut(Relay::Side::both);
  expect(*group.comms[1], 0, bytes);
  run_threads(2, [&](std::uint32_t rank) { EXPECT_TRUE(group.comms[rank + 1]->barrier()); });
  early.join();
  EXPECT_TRUE(done) << done.error().message;
}

TEST_P(MessageLinks, KeepNoMoreThanWhatIsOnItsWay) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer keeps what was freed";
#endif
  const Ranks comms = connect_ranks(2, Hosts::each_its_own, options_of(GetParam()));
  const Bytes bytes = bytes_of(seed_, 0, 700'000);
  Bytes received(bytes.size());
  const auto pass = [&](int count) {
    run_threads(2, [&](std::uint32_t rank) {
      for (int i = 0; i < count && !HasFatalFailure(); ++i)
        if (rank == 0)
          send(*comms[0], 1, bytes);
        else
          receive(*comms[1], 0, received);
    });
  };
  pass(20);
  const std::size_t before = resident_mib();
  pass(400);
  EXPECT_LT(resident_mib(), before + 128);  // 280 MiB were sent
}

// An answer that comes to a rank that has left is no end of the group, and takes nothing of what that one
// sent before, though not all of it may have come when the answer goes.
TEST_P(MessageLinks, ToARankThatHasLeftDisturbNobody) {
  Ranks comms = connect_ranks(3, Hosts::each_its_own, options_of(GetParam()));
  const Bytes small = bytes_of(seed_, 0, 2000), large = bytes_of(seed_, 1, 3 << 20);
  constexpr int answered = 512, count = answered + 250;  // answers are due after 256 messages and after 512
  std::atomic<bool> leaves{false};
  run_threads(3, [&](std::uint32_t rank) {
    if (rank == 0) {
      for (int i = 0; i < count; ++i) send(*comms[0], 1, small);
      leaves = true;
      comms[0]->leave({Code::peer_lost, "worker 0 has left the job"});
      comms[0].reset();
    }
    if (rank == 1) {
      for (int i = 0; i < answered - 1; ++i) expect(*comms[1], 0, small);
      while (!leaves) std::this_thread::yield();
      for (int i = answered - 1; i < count; ++i) expect(*comms[1], 0, small);
      send(*comms[1], 2, large);
    }
    if (rank == 2) expect(*comms[2], 1, large);
  });
}

}  // namespace message_links_test
}  // namespace
}  // namespace muster::collective
