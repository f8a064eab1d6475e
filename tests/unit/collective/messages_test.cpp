// Messages from one rank to another: every layout delivers the same bytes in the same order, and ends the
// same way.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>

#include "messages.h"
#include "ranks.h"

#include "tests/unit/base/mentions.h"

namespace muster::collective {
namespace {
namespace messages_test {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class Messages : public ::testing::TestWithParam<Hosts> {
 protected:
  void SetUp() override {
    seed_ = entropy();
    fmt::print("seed {}\n", seed_);
  }
  std::uint64_t seed_ = 0;
};

TEST_P(Messages, GoBothWays) {
  const Ranks comms = connect_ranks(2, GetParam(), patient);
  run_threads(2, [&](std::uint32_t rank) {
    for (std::uint64_t round = 0; round < 200; ++round) {
      const std::size_t size = RandomStream(seed_, 7).below(round, 1 << (round % 18));
      const Bytes there = bytes_of(seed_, 2 * round, size), back = bytes_of(seed_, 2 * round + 1, 2 * size);
      if (rank == 0) {
        expect_sent(send(*comms[0], 1, there));
        expect_message(*comms[0], 1, back);
      } else {
        expect_message(*comms[1], 0, there);
        expect_sent(send(*comms[1], 0, back));
      }
    }
  });
}

// Everybody sends to the next one first, which blocks for ever where nobody receives meanwhile.
TEST_P(Messages, OfBothDirectionsMayHaveAThreadEach) {
  const Ranks comms = connect_ranks(3, GetParam(), patient);
  run_threads(6, [&](std::uint32_t thread) {
    const std::uint32_t rank = thread / 2, next = (rank + 1) % 3, before = (rank + 2) % 3;
    const RandomStream random(seed_, 4);
    for (std::uint64_t round = 0; round < 40; ++round) {
      const std::size_t size = random.below(round, round % 8 == 0 ? 6 << 20 : 100'000);
      if (thread % 2 == 0) {
        expect_sent(send(*comms[rank], next, bytes_of(seed_, 3 * round + rank, size)));
        expect_sent(send(*comms[rank], before, bytes_of(seed_, 3 * round + rank, size / 3)));
      } else {
        expect_message(*comms[rank], before, bytes_of(seed_, 3 * round + before, size));
        expect_message(*comms[rank], next, bytes_of(seed_, 3 * round + next, size / 3));
      }
    }
  });
}

TEST_P(Messages, GoOnBesideCollectiveCallsOfAnotherThread) {
  const Ranks comms = connect_ranks(3, GetParam(), patient);
  run_threads(6, [&](std::uint32_t thread) {
    const std::uint32_t rank = thread / 2;
    Communicator& comm = *comms[rank];
    for (std::uint64_t round = 0; round < 60; ++round) {
      const std::size_t size = 1 + RandomStream(seed_, 5).below(round, 200'000);
      if (thread % 2 == 0) {
        std::vector<std::int64_t> values(size / 8 + 1, rank + 1);
        ASSERT_TRUE(
            comm.all_reduce(values.data(), values.data(), values.size(), DType::int64, Reduction::sum));
        ASSERT_EQ(values, std::vector<std::int64_t>(values.size(), 6));
        continue;
      }
      const Bytes bytes = bytes_of(seed_, round, size);
      if (rank > 0) expect_message(comm, rank - 1, bytes);
      if (rank < 2) expect_sent(send(comm, rank + 1, bytes));
    }
  });
}

// A sender that computes for longer than its receiver stays awake: it must wake it, or messages wait until
// the receiver looks up by itself, which it does every 100 ms.
TEST_P(Messages, ThatComeLateWakeTheirReceiver) {
  constexpr std::size_t rounds = 25;
  const Ranks comms = connect_ranks(2, GetParam(), patient);
  std::atomic<std::size_t> received{0};
  std::vector<TimePoint> sent_at(rounds), received_at(rounds);
  const Bytes bytes = bytes_of(seed_, 0, 10);
  run_threads(2, [&](std::uint32_t rank) {
    for (std::size_t round = 0; round < rounds; ++round)
      if (rank == 1) {
        expect_message(*comms[1], 0, bytes);
        received_at[round] = real_clock().now();
        ++received;
      } else {
        const TimePoint start = real_clock().now();
        while (received < round || real_clock().now() - start < milliseconds(5)) std::this_thread::yield();
        sent_at[round] = real_clock().now();
        expect_sent(send(*comms[0], 1, bytes));
      }
  });
  std::vector<Duration> took(rounds);
  for (std::size_t round = 0; round < rounds; ++round) took[round] = received_at[round] - sent_at[round];
  std::nth_element(took.begin(), took.begin() + rounds / 2, took.end());
  EXPECT_LT(took[rounds / 2], milliseconds(50));
}

// Any total order of messages works, whoever is late: that is what a placed graph relies on.
TEST_P(Messages, OfEveryTotalOrderArrive) {
  const RandomStream random(seed_, 3);
  std::uint64_t drawn = 0;
  const auto below = [&](std::uint64_t limit) { return random.below(drawn++, limit); };
  for (int order = 0; order < 6; ++order) {
    const auto ranks = static_cast<std::uint32_t>(2 + below(5));
    struct Step {
      std::uint32_t from, to;
      std::vector<std::size_t> sizes;
    };
    std::vector<Step> steps(150);
    for (Step& step : steps) {
      step.from = static_cast<std::uint32_t>(below(ranks));
      step.to = static_cast<std::uint32_t>((step.from + 1 + below(ranks - 1)) % ranks);
      step.sizes.resize(below(4));
      for (std::size_t& size : step.sizes) size = below(std::uint64_t{1} << below(21));
    }
    const Ranks comms = connect_ranks(ranks, GetParam(), patient);
    run_threads(ranks, [&](std::uint32_t rank) {
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const Step& step = steps[i];
        if (step.from != rank && step.to != rank) continue;
        const Bytes bytes =
            bytes_of(seed_, i, std::accumulate(step.sizes.begin(), step.sizes.end(), std::size_t{0}));
        if (step.from == rank)
          expect_sent(send(*comms[rank], step.to, bytes, step.sizes));
        else
          expect_message(*comms[rank], step.from, bytes, step.sizes);
        if (HasFatalFailure()) return;
      }
    });
  }
}

TEST_P(Messages, OfOtherSizesEndTheGroupAndNameBoth) {
  struct Case {
    std::vector<std::size_t> sent, expected;
    std::string error;
  };
  const Case cases[] = {
      {{64},
       {60},
       "rank 0 sent message #2 (64 bytes in 1 piece) to rank 1, which expected 60 bytes in 1 piece"},
      {{64},
       {32, 32},
       "rank 0 sent message #2 (64 bytes in 1 piece) to rank 1, which expected 64 bytes in 2 pieces"},
      {{1, 63},
       {32, 32},
       "rank 0 sent message #2 (64 bytes in 2 pieces) to rank 1, which expected pieces of other sizes"},
      {{9 << 20}, {}, "(9437184 bytes in 1 piece) to rank 1, which expected 0 bytes in 0 pieces"},
  };
  for (const Case& each : cases) {
    const Ranks comms = connect_ranks(2, GetParam(), patient);
    run_threads(2, [&](std::uint32_t rank) {
      const Bytes first = bytes_of(seed_, 0, 10);
      if (rank == 0)
        expect_sent(send(*comms[0], 1, first));
      else
        expect_message(*comms[1], 0, first);
    });
    const Duration took = timed([&] {
      run_threads(2, [&](std::uint32_t rank) {
        const std::vector<std::size_t>& sizes = rank == 0 ? each.sent : each.expected;
        Bytes bytes(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
        Result<> done = rank == 0 ? send(*comms[0], 1, bytes, sizes) : receive(*comms[1], 0, bytes, sizes);
        Bytes answer(8);  // which never comes: a short message is on its way before anybody looks at it
        if (rank == 0 && done) done = receive(*comms[0], 1, answer);
        ASSERT_FALSE(done) << rank;
        EXPECT_EQ(done.error().code, Code::invalid_argument) << rank;
        EXPECT_THAT(done.error().message, HasSubstr(each.error)) << rank;
      });
    });
    EXPECT_LT(took, soon);
    EXPECT_FALSE(comms[0]->barrier());
  }
}

TEST_P(Messages, ThatWaitTooLongNameWhomTheyWaitFor) {
  const Ranks comms = connect_ranks(2, GetParam(), hasty);
  Bytes bytes(100);
  const auto done = receive(*comms[0], 1, bytes);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::timeout);
  EXPECT_THAT(done.error().message,
              AllOf(Mentions("#1", "rank 1", "0 (100 bytes)", "waited", "0.1"), HasSubstr("for rank 1")));
}

TEST_P(Messages, ThatNobodyTakesWaitTooLong) {
  const Ranks comms = connect_ranks(2, GetParam(), hasty);
  const auto done = send(*comms[0], 1, Bytes(24 << 20));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::timeout);
  EXPECT_THAT(done.error().message, Mentions("#1", "rank 0", "1 (25165824 bytes)", "waited"));
}

TEST_P(Messages, ThatAreAwaitedEndWithTheGroup) {
  for (const bool aborted_elsewhere : {false, true}) {
    const Ranks comms = connect_ranks(3, GetParam(), patient);
    std::array<Result<>, 2> done;
    const Duration took = timed([&] {
      std::thread receiver([&] {
        Bytes bytes(100);
        done[0] = receive(*comms[0], 1, bytes);
      });
      std::thread sender([&] { done[1] = send(*comms[1], 2, Bytes(24 << 20)); });
      comms[aborted_elsewhere ? 2 : 0]->abort({Code::peer_lost, "worker 7 was killed"});
      receiver.join();
      sender.join();
    });
    EXPECT_LT(took, soon);
    for (const Result<>& each : done) {
      ASSERT_FALSE(each);
      EXPECT_EQ(each.error().code, Code::peer_lost);
      EXPECT_THAT(each.error().message, AnyOf(HasSubstr("worker 7 was killed"), HasSubstr("ended the group"),
                                              HasSubstr("is gone")));
    }
    if (aborted_elsewhere) continue;
    EXPECT_EQ(done[0].error().message, "worker 7 was killed");
  }
}

// Rank 0 waits on one acceptor, and the end comes in by another: who is awaited does nothing at all.
TEST_P(Messages, ThatAreAwaitedFromAnIdleRankEndWithTheGroup) {
  for (const std::uint32_t idle : {1u, 2u}) {
    const Ranks comms = connect_ranks(3, GetParam(), patient);
    Result<> done;
    const Duration took = timed([&] {
      std::thread receiver([&] {
        Bytes bytes(100);
        done = receive(*comms[0], idle, bytes);
      });
      comms[3 - idle]->abort({Code::peer_lost, "worker 7 was killed"});
      receiver.join();
    });
    EXPECT_LT(took, soon);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::peer_lost);
    EXPECT_THAT(done.error().message,
                AnyOf(HasSubstr("worker 7 was killed"), HasSubstr(fmt::format("rank {}", 3 - idle))));
  }
}

TEST_P(Messages, ThatAreAwaitedFromARankThatLeavesNameIt) {
  Ranks comms = connect_ranks(2, GetParam(), patient);
  Result<> done;
  const Duration took = timed([&] {
    std::thread receiver([&] {
      Bytes bytes(100);
      done = receive(*comms[0], 1, bytes);
    });
    comms[1].reset();
    receiver.join();
  });
  EXPECT_LT(took, soon);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::peer_lost);
  EXPECT_THAT(done.error().message, AllOf(HasSubstr("rank 1"), HasSubstr("message #1")));
}

TEST_P(Messages, ToARankThatLeavesEndTheWait) {
  Ranks comms = connect_ranks(2, GetParam(), patient);
  Result<> done;
  const Duration took = timed([&] {
    std::thread sender([&] { done = send(*comms[0], 1, Bytes(24 << 20)); });
    comms[1].reset();
    sender.join();
  });
  EXPECT_LT(took, soon);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::peer_lost);
  EXPECT_THAT(done.error().message, HasSubstr("rank 1"));
}

// The end of every job: some are done while others still tell each other their losses.
TEST_P(Messages, OfARankThatHasLeftArriveAndTheOthersGoOn) {
  for (const bool destroyed : {false, true}) {
    Ranks comms = connect_ranks(3, GetParam(), patient);
    const Bytes last = bytes_of(seed_, 0, 100'000), later = bytes_of(seed_, 1, 2 << 20);
    expect_sent(send(*comms[0], 1, last));
    expect_sent(send(*comms[0], 2, last));
    if (destroyed)
      comms[0].reset();
    else
      comms[0]->leave({Code::peer_lost, "worker 0 has left the job"});
    run_threads(3, [&](std::uint32_t rank) {
      if (rank == 0) return;
      if (rank == 1) expect_sent(send(*comms[1], 2, later));
      if (rank == 2) expect_message(*comms[2], 1, later);
      expect_message(*comms[rank], 0, last);
    });
    EXPECT_FALSE(comms[1]->barrier()) << "a collective call needs everybody";
  }
}

// A rank makes its first message as soon as its own connections are there; others may still wait for theirs
// then.
TEST_P(Messages, ReachARankThatStillConnects) {
  constexpr std::uint32_t ranks = 4;
  constexpr int groups = 40;
  for (int i = 0; i < groups; ++i) {
    Prepared prepared = prepare(ranks, GetParam());
    Ranks comms(ranks);
    run_threads(ranks, [&](std::uint32_t rank) {
      Group group{.epoch = 1, .job_id = 7, .rank = rank, .endpoints = prepared.endpoints};
      auto connected = connect(std::move(group), std::move(prepared.listeners[rank]), {});
      ASSERT_TRUE(connected) << "rank " << rank << ": " << connected.error().message;
      comms[rank] = *std::move(connected);
      const std::uint32_t next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
      const Bytes own(1, std::byte(rank)), others(1, std::byte(last));
      std::thread sender([&] { expect_sent(send(*comms[rank], next, own)); });
      expect_message(*comms[rank], last, others);
      sender.join();
    });
    if (HasFailure()) return;
  }
}

std::string name_of(const ::testing::TestParamInfo<Hosts>& hosts) {
  constexpr const char* names[] = {"OneHost", "EachItsOwn", "TwoInterleaved"};
  return names[static_cast<int>(hosts.param)];
}
INSTANTIATE_TEST_SUITE_P(Layouts, Messages,
                         ::testing::Values(Hosts::one, Hosts::each_its_own, Hosts::two_interleaved), name_of);

TEST(MessageArguments, ThatCannotWorkAreRefusedAndHarmNothing) {
  const Ranks comms = connect_ranks(2, Hosts::one);
  Bytes bytes(8);
  EXPECT_THAT(send(*comms[0], 0, bytes).error().message, Mentions("rank 0", "of 2", "send"));
  EXPECT_THAT(receive(*comms[0], 2, bytes).error().message, Mentions("rank 0", "of 2", "receive", "rank 2"));
  const std::vector<std::span<const std::byte>> many(70'000);
  EXPECT_EQ(comms[0]->send(1, many).error().code, Code::invalid_argument);
  run_threads(2, [&](std::uint32_t rank) { EXPECT_TRUE(comms[rank]->barrier()); });
}

}  // namespace messages_test
}  // namespace
}  // namespace muster::collective
