// Calls that are started and waited for later, and messages with tags.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "ranks.h"

#include "tests/unit/base/mentions.h"

namespace muster::collective {
namespace {

using AsyncRanks = std::vector<std::unique_ptr<AsyncGroup>>;

AsyncRanks async_ranks(std::uint32_t ranks, Hosts hosts, const Options& options = patient) {
  AsyncRanks made;
  for (auto& group : connect_ranks(ranks, hosts, options))
    made.push_back(std::make_unique<AsyncGroup>(std::move(group)));
  return made;
}

std::vector<std::shared_ptr<Communicator>> shared_ranks(std::uint32_t ranks, Hosts hosts) {
  auto made = connect_ranks(ranks, hosts, patient);
  return {std::make_move_iterator(made.begin()), std::make_move_iterator(made.end())};
}

AsyncGroup::Call adding(float& value) {
  return [&value](Communicator& group) {
    return group.all_reduce(&value, &value, 1, DType::float32, Reduction::sum);
  };
}

void expect_done(const Work& work) {
  const auto end = work.wait(patient.call_timeout);
  ASSERT_TRUE(end) << "it never ended";
  EXPECT_TRUE(*end) << end->error().message;
}

class Async : public ::testing::TestWithParam<Hosts> {};

TEST_P(Async, CallsAreMadeInTheOrderInWhichTheyWereStarted) {
  const AsyncRanks groups = async_ranks(3, GetParam());
  run_threads(3, [&](std::uint32_t rank) {
    std::vector<float> values(50);
    std::vector<std::shared_ptr<Work>> under_way;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i * (rank + 1));
      under_way.push_back(groups[rank]->start(adding(values[i])));
    }
    float last = 1;
    ASSERT_TRUE(groups[rank]->run(adding(last))) << "a call that is waited for is made behind the others";
    EXPECT_EQ(last, 3);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_TRUE(under_way[i]->is_done());
      expect_done(*under_way[i]);
      EXPECT_EQ(values[i], static_cast<float>(6 * i));
    }
  });
}

TEST_P(Async, MessagesOvertakeThoseWithOtherTags) {
  const AsyncRanks groups = async_ranks(2, GetParam());
  constexpr std::int64_t tags[] = {7, 3, 7, -1};
  run_threads(2, [&](std::uint32_t rank) {
    std::vector<Bytes> bytes;
    for (std::size_t i = 0; i < 4; ++i) bytes.push_back(rank == 0 ? bytes_of(1, i, 100 + i) : Bytes(100 + i));
    std::vector<std::shared_ptr<Work>> under_way;
    if (rank == 0)
      for (std::size_t i = 0; i < 4; ++i) under_way.push_back(groups[0]->send(1, bytes[i], tags[i]));
    else
      for (const std::size_t i : {3u, 1u, 0u, 2u})
        under_way.push_back(groups[1]->receive(0, bytes[i], tags[i]));
    for (const auto& work : under_way) expect_done(*work);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(bytes[i] == bytes_of(1, i, 100 + i)) << i;
  });
}

// Each waits for what another sends only after it has got something itself.
TEST_P(Async, AMessageThatWaitsHoldsUpNoOther) {
  const AsyncRanks groups = async_ranks(3, GetParam());
  const std::size_t size = 3 << 20;  // more than what lies between the ranks
  run_threads(3, [&](std::uint32_t rank) {
    const std::uint32_t next = (rank + 1) % 3, before = (rank + 2) % 3;
    Bytes from_next(size), from_before(size);
    const Bytes to_next = bytes_of(2, rank * 3 + next, size),
                to_before = bytes_of(2, rank * 3 + before, size);
    const auto first = groups[rank]->receive(before, from_before, 0);
    const auto second = groups[rank]->receive(next, from_next, 0);
    const auto third = groups[rank]->send(before, to_before, 0);
    expect_done(*second);
    const auto fourth = groups[rank]->send(next, to_next, 0);
    for (const auto& work : {first, third, fourth}) expect_done(*work);
    EXPECT_TRUE(from_next == bytes_of(2, next * 3 + rank, size));
    EXPECT_TRUE(from_before == bytes_of(2, before * 3 + rank, size));
  });
}

TEST_P(Async, ASizeThatDiffersIsNamedAndEndsNothing) {
  const AsyncRanks groups = async_ranks(2, GetParam());
  run_threads(2, [&](std::uint32_t rank) {
    Bytes three(3), four(4), empty;
    if (rank == 0) {
      expect_done(*groups[0]->send(1, four, 5));
      expect_done(*groups[0]->send(1, empty, 6));
      return;
    }
    const auto end = groups[1]->receive(0, three, 5)->wait(patient.call_timeout);
    ASSERT_TRUE(end);
    ASSERT_FALSE(*end);
    EXPECT_THAT(end->error().message, Mentions("rank 0 sent 4 bytes with tag 5 to rank 1", "expected 3"));
    expect_done(*groups[1]->receive(0, empty, 6));
  });
}

TEST_P(Async, AnAbortEndsWhatIsUnderWay) {
  const AsyncRanks groups = async_ranks(2, GetParam());
  float value = 1;
  Bytes bytes(8);
  const auto call = groups[0]->start(adding(value));
  const auto message = groups[0]->receive(1, bytes, 0);
  EXPECT_FALSE(call->wait(Duration::zero()));
  groups[0]->abort({Code::aborted, "the test ends it"});
  for (const auto& work : {call, message}) {
    const auto end = work->wait(soon);
    ASSERT_TRUE(end);
    ASSERT_FALSE(*end);
    EXPECT_THAT(end->error().message, Mentions("the test ends it"));
  }
}

// The thread that made a call is not back yet when who waited for it goes on.
TEST(AsyncGroup, ThatGoesBehindItsLastCallEndsNothingOfOthers) {
  const auto groups = shared_ranks(2, Hosts::one);
  run_threads(2, [&](std::uint32_t rank) {
    for (int turn = 0; turn < 500; ++turn) {
      float value = 1;
      auto calls = std::make_unique<AsyncGroup>(groups[rank]);
      expect_done(*calls->start(adding(value)));
      calls.reset();
      ASSERT_EQ(value, 2);
      ASSERT_TRUE(groups[rank]->barrier()) << "turn " << turn;
    }
  });
}

TEST_P(Async, AGroupThatGoesBehindAReceiveFromAnyEndsNothingOfOthers) {
  const auto groups = shared_ranks(3, GetParam());
  run_threads(3, [&](std::uint32_t rank) {
    auto calls = std::make_unique<AsyncGroup>(groups[rank]);
    Bytes bytes = bytes_of(3, rank, 8);
    if (rank == 0) {
      const auto received = calls->receive_from_any(bytes, 5);  // ranks 1 and 2 are listened to
      expect_done(*received.work);
      EXPECT_EQ(*received.from, 1u);
    }
    if (rank == 1) expect_done(*calls->send(0, bytes, 5));
    calls.reset();
    EXPECT_TRUE(groups[rank]->barrier());
  });
}

TEST_P(Async, ADeadlineOfOneCallIsItsOwn) {
  const AsyncRanks groups = async_ranks(2, GetParam());
  float value = 1;
  const auto end = groups[0]->run(adding(value), std::chrono::milliseconds(50));
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::timeout);
  EXPECT_THAT(end.error().message, Mentions("all_reduce #1", "rank 1"));
}

// As when a process is killed: nobody leaves, another rank says that it is gone.
TEST(LostRank, FailsCallsUnderWayAndTheNextOnesByName) {
  const AsyncRanks groups = async_ranks(3, Hosts::one);
  float values[2] = {};
  const auto waiting = groups[0]->start(adding(values[0]));
  const Error gone{Code::peer_lost, "rank 1 (process 7) has ended"};
  groups[2]->lose(1, gone);
  const auto end = waiting->wait(soon);
  ASSERT_TRUE(end) << "the call goes on waiting";
  ASSERT_FALSE(*end);
  EXPECT_EQ(end->error().message, gone.message);
  const Result<> next = groups[2]->run(adding(values[1]));
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().message, gone.message);
}

TEST(LostRank, HasSentWhatItHasSent) {
  const AsyncRanks groups = async_ranks(2, Hosts::one);
  const Bytes sent = bytes_of(1, 0, 1000);
  expect_done(*groups[1]->send(0, sent, 5));
  groups[0]->lose(1, {Code::peer_lost, "rank 1 (process 7) has ended"});
  Bytes received(sent.size()), more(sent.size());
  expect_done(*groups[0]->receive(1, received, 5));
  EXPECT_TRUE(received == sent);
  const auto end = groups[0]->receive(1, more, 5)->wait(soon);
  ASSERT_TRUE(end) << "nobody is there to send it";
  ASSERT_FALSE(*end);
  EXPECT_EQ(end->error().code, Code::peer_lost);
  EXPECT_THAT(end->error().message, Mentions("rank 1", "ended", "message"));
}

TEST(LostRank, OfAnotherHostEndsTheGroup) {
  const AsyncRanks groups = async_ranks(2, Hosts::each_its_own);
  groups[0]->lose(1, {Code::peer_lost, "rank 1 (process 7) has ended"});
  float value = 0;
  const Result<> next = groups[0]->run(adding(value));
  ASSERT_FALSE(next);
  EXPECT_THAT(next.error().message, Mentions("rank 1", "process 7"));
}

TEST_P(Async, AReceiveFromAnyRankTakesWhatComesFirstAndSaysWhomItIsFrom) {
  const AsyncRanks groups = async_ranks(3, GetParam());
  run_threads(3, [&](std::uint32_t rank) {
    if (rank != 0) {
      const Bytes other = bytes_of(3, 9, 5), own = bytes_of(3, rank, 100);
      expect_done(*groups[rank]->send(0, other, /*tag=*/8));
      expect_done(*groups[rank]->send(0, own, /*tag=*/7));
      return;
    }
    std::vector<bool> heard(3);
    for (int i = 0; i < 2; ++i) {
      Bytes bytes(100);
      const auto started = groups[0]->receive_from_any(bytes, /*tag=*/7);
      expect_done(*started.work);
      EXPECT_FALSE(heard[*started.from]) << *started.from;
      heard[*started.from] = true;
      EXPECT_TRUE(bytes == bytes_of(3, *started.from, 100));
    }
    for (const std::uint32_t from : {2u, 1u}) {
      Bytes bytes(5);
      expect_done(*groups[0]->receive(from, bytes, /*tag=*/8));
      EXPECT_TRUE(bytes == bytes_of(3, 9, 5));
    }
  });
}

TEST_P(Async, ReceivesFromAnyRankAndFromOneTakeTheirTurns) {
  const AsyncRanks groups = async_ranks(2, GetParam());
  run_threads(2, [&](std::uint32_t rank) {
    std::vector<Bytes> bytes;
    for (std::size_t i = 0; i < 4; ++i) bytes.push_back(rank == 1 ? bytes_of(4, i, 10) : Bytes(10));
    std::vector<std::shared_ptr<Work>> under_way;
    for (std::size_t i = 0; i < 4; ++i) {
      if (rank == 1)
        under_way.push_back(groups[1]->send(0, bytes[i], 0));
      else if (i % 2 == 0)
        under_way.push_back(groups[0]->receive_from_any(bytes[i], 0).work);
      else
        under_way.push_back(groups[0]->receive(1, bytes[i], 0));
    }
    for (const auto& work : under_way) expect_done(*work);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(bytes[i] == bytes_of(4, i, 10)) << i;
  });
}

// It waits for those who are still there.
TEST_P(Async, ARankThatHasLeftDoesNotEndAReceiveFromAny) {
  AsyncRanks groups = async_ranks(3, GetParam());
  Bytes bytes(10);
  const auto started = groups[0]->receive_from_any(bytes, 0);
  groups[2].reset();
  const Bytes sent = bytes_of(5, 1, 10);
  expect_done(*groups[1]->send(0, sent, 0));
  expect_done(*started.work);
  EXPECT_EQ(*started.from, 1u);
  EXPECT_TRUE(bytes == sent);
}

TEST_P(Async, AReceiveFromAnyRankEndsWhenNobodyIsLeft) {
  AsyncRanks groups = async_ranks(3, GetParam());
  Bytes bytes(10);
  const auto started = groups[0]->receive_from_any(bytes, 0);
  groups[2].reset();
  groups[1].reset();
  const auto end = started.work->wait(patient.call_timeout);
  ASSERT_TRUE(end);
  ASSERT_FALSE(*end);
  EXPECT_EQ(end->error().code, Code::peer_lost);
}

TEST_P(Async, AReceiveFromAnyRankHasADeadline) {
  const AsyncRanks groups = async_ranks(3, GetParam(), hasty);
  Bytes bytes(10);
  const auto end = groups[0]->receive_from_any(bytes, 9).work->wait(patient.call_timeout);
  ASSERT_TRUE(end);
  ASSERT_FALSE(*end);
  EXPECT_EQ(end->error().code, Code::timeout);
  EXPECT_THAT(end->error().message, Mentions("rank 0", "tag 9", "any rank"));
}

INSTANTIATE_TEST_SUITE_P(Layouts, Async,
                         ::testing::Values(Hosts::one, Hosts::each_its_own, Hosts::two_interleaved));

TEST(Work, TellsItsFollowersOnce) {
  Work work;
  std::atomic<int> told{0};
  work.on_done([&](const Result<>& end) { told += end ? 1 : 100; });
  EXPECT_EQ(told, 0);
  work.finish({});
  EXPECT_EQ(told, 1);
  work.on_done([&](const Result<>& end) { told += end ? 10 : 100; });
  EXPECT_EQ(told, 11);
}

// What docs/guide/collectives.md shows.
TEST(AsyncGroup, ComputesWhileACallIsUnderWay) {
  const AsyncRanks groups = async_ranks(2, Hosts::one);
  run_threads(2, [&](std::uint32_t rank) {
    AsyncGroup& calls = *groups[rank];
    std::vector<float> data(100'000, 1), other(1000, 2);
    const auto work = calls.start([&](Communicator& ranks) {
      return ranks.all_reduce(data.data(), data.data(), data.size(), DType::float32, Reduction::sum);
    });
    for (float& value : other) value *= 2;
    const auto end = work->wait(std::chrono::seconds(5));
    ASSERT_TRUE(end);
    EXPECT_TRUE(*end);
    EXPECT_EQ(data, std::vector<float>(data.size(), 2));
    const auto bytes = std::as_writable_bytes(std::span(other));
    expect_done(rank == 0 ? *calls.send(1, bytes, /*tag=*/7) : *calls.receive(0, bytes, 7));
  });
}

TEST(AsyncGroup, IsNoMoreThanMemoryInAForkedChild) {
  AsyncRanks groups = async_ranks(2, Hosts::one);
  std::array<float, 2> values{1, 1};
  const auto work = groups[0]->start(adding(values[0]));  // its thread is the parent's
  const pid_t child = ::fork();
  if (child == 0) {
    groups.clear();
    std::_Exit(7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  ASSERT_TRUE(groups[1]->run(adding(values[1])));
  expect_done(*work);
}

TEST(AsyncGroup, RefusesMessagesToRanksThatAreNone) {
  const AsyncRanks groups = async_ranks(1, Hosts::one);
  Bytes bytes(1);
  EXPECT_THAT(groups[0]->send(0, bytes, 0)->wait()->error().message, Mentions("cannot send to rank 0"));
  EXPECT_THAT(groups[0]->receive(4, bytes, 0)->wait()->error().message, Mentions("receive from rank 4"));
}

}  // namespace
}  // namespace muster::collective
