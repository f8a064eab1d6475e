// What a Communicator must do over every transport: order, empty and large calls and messages, a peer that is
// killed or stopped, the deadline, abort. A new transport has a line in `every_transport`, and passes the
// rest unchanged. (What the connection below it must do is in link_conformance_test.cpp.)
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <numeric>

#include "forked.h"
#include "messages.h"
#include "ranks.h"

#include "tests/unit/base/mentions.h"

namespace muster::collective {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

std::shared_ptr<const net::Security> plain() { return nullptr; }
std::shared_ptr<const net::Security> with_token() {
  return net::Security::from_token("a token of some length").value();
}

struct Over {
  const char* name;
  Hosts hosts;
  std::shared_ptr<const net::Security> (*security)();
  const char* of_ucx = nullptr;  // which of its transports it may use
};
constexpr Over every_transport[] = {
    {"SharedMemory", Hosts::one, &plain},
    {"Tcp", Hosts::each_its_own, &plain},
    {"Tls", Hosts::each_its_own, &with_token},
    {"SharedMemoryAndTcp", Hosts::two_interleaved, &plain},
    {"UcxTcp", Hosts::each_its_own_over_ucx, &plain, "tcp"},
    {"UcxSharedMemory", Hosts::each_its_own_over_ucx, &plain, "posix,sysv,self"}};

class EveryTransport : public ::testing::TestWithParam<Over> {
 protected:
  void SetUp() override {
    seed_ = entropy();
    fmt::print("seed {}\n", seed_);
    if (GetParam().of_ucx == nullptr) return;
    if (const auto reason = why_no_ucx()) GTEST_SKIP() << *reason;
    ::setenv("UCX_TLS", GetParam().of_ucx, 1);
  }
  Options options(Options chosen) const {
    chosen.security = GetParam().security();
    return chosen;
  }
  std::uint64_t seed_ = 0;
};

TEST_P(EveryTransport, KeepsTheOrderOfMessagesAndTheirPieces) {
  const Ranks comms = connect_ranks(2, GetParam().hosts, options(patient));
  const std::vector<std::vector<std::size_t>> messages = {
      {1}, {63, 1}, {65}, {0, 7, 0, 0, 9, 0}, {4096, 3, 60'000}, {16 << 10, (16 << 10) + 1}, {100'000}};
  run_threads(2, [&](std::uint32_t rank) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Bytes bytes = bytes_of(seed_, i, std::accumulate(messages[i].begin(), messages[i].end(), 0ul));
      if (rank == 0)
        expect_sent(send(*comms[0], 1, bytes, messages[i]));
      else
        expect_message(*comms[1], 0, bytes, messages[i]);
    }
  });
}

TEST_P(EveryTransport, CarriesEmptyMessages) {
  const Ranks comms = connect_ranks(2, GetParam().hosts, options(patient));
  run_threads(2, [&](std::uint32_t rank) {
    for (const std::vector<std::size_t>& sizes : {std::vector<std::size_t>{}, {0}, {0, 0}, {5}})
      if (rank == 0)
        expect_sent(
            send(*comms[0], 1, bytes_of(seed_, 0, sizes == std::vector<std::size_t>{5} ? 5 : 0), sizes));
      else
        expect_message(*comms[1], 0, bytes_of(seed_, 0, sizes == std::vector<std::size_t>{5} ? 5 : 0), sizes);
  });
}

// More than any buffer on the way holds, so that both sides must take turns.
TEST_P(EveryTransport, CarriesMessagesLargerThanItself) {
  const Ranks comms = connect_ranks(2, GetParam().hosts, options(patient));
  const Bytes large = bytes_of(seed_, 1, (12 << 20) + 13), small = bytes_of(seed_, 2, 100);
  run_threads(2, [&](std::uint32_t rank) {
    for (int round = 0; round < 2; ++round)
      if (rank == 0) {
        expect_sent(send(*comms[0], 1, large));
        expect_sent(send(*comms[0], 1, small));
      } else {
        expect_message(*comms[1], 0, large);
        expect_message(*comms[1], 0, small);
      }
  });
}

TEST_P(EveryTransport, KeepsTheOrderOfCallsOfEverySizeBesideMessages) {
  constexpr std::uint32_t ranks = 3;
  const Ranks comms = connect_ranks(ranks, GetParam().hosts, options(patient));
  run_threads(ranks, [&](std::uint32_t rank) {
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{3 << 20}}) {
      std::vector<std::int64_t> numbers(count);
      for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<std::int64_t>(i * (rank + 1));
      const auto summed =
          comms[rank]->all_reduce(numbers.data(), numbers.data(), count, DType::int64, Reduction::sum);
      ASSERT_TRUE(summed) << summed.error().message;
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(numbers[i], static_cast<std::int64_t>(6 * i)) << count;
      const Bytes message = bytes_of(seed_, count, 100);
      if (rank == 0) expect_sent(send(*comms[0], 1, message));
      if (rank == 1) expect_message(*comms[1], 0, message);
      Bytes told = rank == 2 ? bytes_of(seed_, count + 1, count) : Bytes(count);
      const auto spread = comms[rank]->broadcast(told.data(), told.size(), 2);
      ASSERT_TRUE(spread) << spread.error().message;
      EXPECT_TRUE(told == bytes_of(seed_, count + 1, count)) << count << " bytes of a broadcast";
    }
  });
}

// Sizes that fit into a slot, and that go in several steps.
TEST_P(EveryTransport, MovesPiecesOfEverySizeBesideMessages) {
  constexpr std::uint32_t ranks = 3;
  const Ranks comms = connect_ranks(ranks, GetParam().hosts, options(patient));
  const auto piece_of = [&](std::uint32_t from, std::uint32_t to, std::size_t size) {
    return bytes_of(seed_, from * ranks + to, size);
  };
  run_threads(ranks, [&](std::uint32_t rank) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{5000}, std::size_t{3 << 20}}) {
      std::vector<Bytes> given, taken(ranks, Bytes(size));
      std::vector<std::span<const std::byte>> sent;
      std::vector<std::span<std::byte>> places;
      for (std::uint32_t to = 0; to < ranks; ++to) given.push_back(piece_of(rank, to, size));
      for (std::uint32_t peer = 0; peer < ranks; ++peer) {
        sent.emplace_back(given[peer]);
        places.emplace_back(taken[peer]);
      }
      const auto exchanged = comms[rank]->all_to_all(sent, places);
      ASSERT_TRUE(exchanged) << exchanged.error().message;
      for (std::uint32_t from = 0; from < ranks; ++from)
        EXPECT_TRUE(taken[from] == piece_of(from, rank, size)) << size << " bytes of an all_to_all";
      const Bytes message = bytes_of(seed_, 100, 100);
      if (rank == 0) expect_sent(send(*comms[0], 1, message));
      if (rank == 1) expect_message(*comms[1], 0, message);
      Bytes own(size);
      const auto scattered = comms[rank]->scatter(rank == 1 ? sent : decltype(sent){}, own, 1);
      ASSERT_TRUE(scattered) << scattered.error().message;
      EXPECT_TRUE(own == piece_of(1, rank, size)) << size << " bytes of a scatter";
      const auto gathered = comms[rank]->gather(sent[2], rank == 2 ? places : decltype(places){}, 2);
      ASSERT_TRUE(gathered) << gathered.error().message;
      for (std::uint32_t from = 0; rank == 2 && from < ranks; ++from)
        EXPECT_TRUE(taken[from] == piece_of(from, 2, size)) << size << " bytes of a gather";
    }
  });
}

TEST_P(EveryTransport, GivesEachRankItsBlockOfWhatAnAllReduceGives) {
  constexpr std::uint32_t ranks = 3;
  const Ranks comms = connect_ranks(ranks, GetParam().hosts, options(patient));
  run_threads(ranks, [&](std::uint32_t rank) {
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{1 << 20}}) {
      std::vector<float> in(count * ranks), all(in.size()), block(count);
      for (std::size_t i = 0; i < in.size(); ++i)
        in[i] = 0.1F * static_cast<float>(i % 1000) + static_cast<float>(rank) / 3;
      const auto summed =
          comms[rank]->all_reduce(in.data(), all.data(), in.size(), DType::float32, Reduction::sum);
      ASSERT_TRUE(summed) << summed.error().message;
      const auto scattered =
          comms[rank]->reduce_scatter(in.data(), block.data(), count, DType::float32, Reduction::sum);
      ASSERT_TRUE(scattered) << scattered.error().message;
      EXPECT_EQ(std::memcmp(block.data(), all.data() + rank * count, count * sizeof(float)), 0) << count;
      std::vector<float> reduced(in.size());
      const auto to_root =
          comms[rank]->reduce(in.data(), reduced.data(), in.size(), DType::float32, Reduction::sum, 0);
      ASSERT_TRUE(to_root) << to_root.error().message;
      if (rank != 0) continue;
      EXPECT_EQ(std::memcmp(reduced.data(), all.data(), all.size() * sizeof(float)), 0) << count;
    }
  });
}

TEST_P(EveryTransport, AbortWakesAWaiterWithinMilliseconds) {
  const Ranks comms = connect_ranks(3, GetParam().hosts, options(patient));
  std::array<Duration, 3> waited{};
  std::array<Result<>, 3> results;
  std::vector<std::thread> waiters;
  for (const std::uint32_t rank : {0u, 1u})
    waiters.emplace_back([&, rank] {
      results[rank] = comms[rank]->barrier();
      waited[rank] = real_clock().now().time_since_epoch();
    });
  const Duration start = real_clock().now().time_since_epoch();
  comms[0]->abort({Code::peer_lost, "worker 2 was killed"});
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_LT(waited[0] - start, soon);
  EXPECT_LT(waited[1] - start, soon) << "one rank's abort ends the group for all";
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().code, Code::peer_lost);
  EXPECT_EQ(results[0].error().message, "worker 2 was killed");
  EXPECT_FALSE(results[1]);
}

TEST_P(EveryTransport, ADeadlineNamesTheCallAndTheMissingRank) {
  const Ranks comms = connect_ranks(3, GetParam().hosts, options(hasty));
  run_threads(3, [&](std::uint32_t rank) { ASSERT_TRUE(sum_of_one(*comms[rank])); });
  const auto done = sum_of_one(*comms[0], 1000);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::timeout);
  EXPECT_THAT(done.error().message, AllOf(Mentions("all_reduce #2 (1000 x float32, sum)", "waited 0"),
                                          AnyOf(HasSubstr("rank 1"), HasSubstr("rank 2"))));
}

TEST_P(EveryTransport, AKilledPeerEndsTheWaitInACall) {
  Forked ranks(3, GetParam().hosts, options(patient), [](const Forked::Child& child) {
    for (int call = 0; call < 10; ++call)
      if (!sum_of_one(child.comm, 100'000)) return 4;
    // Behind it no rank is in a call any more; rank 2 may die as soon as rank 0 has left it.
    if (const auto met = child.comm.barrier(); !met) return met.error().code == Code::peer_lost ? 0 : 3;
    if (child.comm.rank() == 2) {
      child.wait_for_go();
      ::raise(SIGKILL);
    }
    return child.comm.barrier() ? 5 : 0;  // it must fail, and soon
  });
  for (int call = 0; call < 10; ++call) {
    std::vector<float> data(100'000, 1);
    ASSERT_TRUE(
        ranks.comm().all_reduce(data.data(), data.data(), data.size(), DType::float32, Reduction::sum));
    ASSERT_EQ(data, std::vector<float>(data.size(), 3));
  }
  ASSERT_TRUE(ranks.comm().barrier());
  ranks.go();  // not before: who dies takes the calls of the others along
  const int killed = ranks.wait_for(2);
  EXPECT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL) << killed;
  // What the cluster does when it learns of the death.
  std::thread watcher([&] { ranks.comm().abort({Code::peer_lost, "worker 2 was killed"}); });
  EXPECT_FALSE(ranks.comm().barrier());
  watcher.join();
  const int status = ranks.wait_for(1);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Rank 2 dies in the middle of a message to rank 0, while rank 1 waits for one from it.
TEST_P(EveryTransport, AKilledPeerEndsTheWaitForItsMessage) {
  Forked ranks(3, GetParam().hosts, options(patient), [](const Forked::Child& child) {
    // Before that not all are connected; rank 2 may die as soon as rank 0 has heard it.
    if (const auto met = child.comm.barrier(); !met) return met.error().code == Code::peer_lost ? 0 : 3;
    std::vector<std::byte> bytes(64 << 20);
    const std::span<std::byte> piece(bytes);
    const std::span<const std::byte> sent(piece);
    if (child.comm.rank() == 2) return child.comm.send(0, {&sent, 1}) ? 4 : 5;  // it never gets so far
    const auto done = child.comm.receive(2, {&piece, 1});
    return !done && done.error().code == Code::peer_lost ? 0 : 6;
  });
  const auto receive = [&](std::size_t size_bytes) {
    std::vector<std::byte> bytes(size_bytes);
    const std::span<std::byte> piece(bytes);
    return ranks.comm().receive(2, {&piece, 1});
  };
  ASSERT_TRUE(ranks.comm().barrier());
  std::thread watcher;
  Result<> done;
  const Duration took = timed([&] {
    ::kill(ranks.child(2), SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(ranks.wait_for(2)));
    // Between hosts the connection tells it; on one host the cluster does.
    if (GetParam().hosts != Hosts::each_its_own && GetParam().hosts != Hosts::each_its_own_over_ucx)
      watcher = std::thread([&] { ranks.comm().abort({Code::peer_lost, "worker 2 was killed"}); });
    done = receive(64 << 20);
    const int status = ranks.wait_for(1);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  });
  if (watcher.joinable()) watcher.join();
  EXPECT_LT(took, soon);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::peer_lost);
  // Rank 1, which has heard of it sooner, may be gone first.
  EXPECT_THAT(done.error().message,
              AnyOf(HasSubstr("worker 2 was killed"), HasSubstr("rank 2"), HasSubstr("rank 1")));
}

// It holds its memory and connections: only the deadline tells.
TEST_P(EveryTransport, AStoppedPeerIsNamedAtTheDeadline) {
  Forked ranks(2, GetParam().hosts, options(hasty),
               [](const Forked::Child& child) { return child.comm.rank() == 1 ? ::raise(SIGSTOP) : 0; });
  int status = 0;
  ASSERT_EQ(::waitpid(ranks.child(1), &status, WUNTRACED), ranks.child(1));
  ASSERT_TRUE(WIFSTOPPED(status)) << status;
  const Result<> called = sum_of_one(ranks.comm());
  ASSERT_FALSE(called);
  EXPECT_EQ(called.error().code, Code::timeout);
  EXPECT_THAT(called.error().message, AllOf(HasSubstr("all_reduce #1"), HasSubstr("rank 1")));
}

TEST_P(EveryTransport, AStoppedPeerWhoseMessageIsAwaitedIsNamedAtTheDeadline) {
  Forked ranks(2, GetParam().hosts, options(hasty),
               [](const Forked::Child& child) { return child.comm.rank() == 1 ? ::raise(SIGSTOP) : 0; });
  int status = 0;
  ASSERT_EQ(::waitpid(ranks.child(1), &status, WUNTRACED), ranks.child(1));
  ASSERT_TRUE(WIFSTOPPED(status)) << status;
  Bytes bytes(100);
  const auto done = receive(ranks.comm(), 1, bytes);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::timeout);
  EXPECT_THAT(done.error().message, Mentions("#1", "rank 1", "waited"));
}

INSTANTIATE_TEST_SUITE_P(All, EveryTransport, ::testing::ValuesIn(every_transport),
                         [](const auto& over) { return over.param.name; });

}  // namespace
}  // namespace muster::collective
