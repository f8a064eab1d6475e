// What happens when ranks disagree, are late, go away or are unauthorized peers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "messages.h"
#include "muster/collective/local_group.h"
#include "muster/collective/local_pairs.h"
#include "ranks.h"
#include "tests/unit/base/mentions.h"

namespace muster::collective {
namespace {
namespace failure_test {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class Failure : public ::testing::TestWithParam<Hosts> {};

TEST_P(Failure, LaterCallsFailWithTheFirstReason) {
  const Ranks comms = connect_ranks(2, GetParam(), patient);
  comms[0]->abort({Code::peer_lost, "worker 1 was killed"});
  comms[0]->abort({Code::aborted, "something later"});
  for (int call = 0; call < 2; ++call) {
    const auto done = sum_of_one(*comms[0]);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "worker 1 was killed");
  }
}

// Rank 1 has all that it needs from rank 0 and waits for rank 2 only: it must still hear that rank 0 gave up,
// if only from rank 2 that the group has ended.
TEST_P(Failure, ARankThatGivesUpEndsTheOthersWait) {
  const Ranks comms =
      connect_ranks(3, GetParam(), [](std::uint32_t rank) { return rank == 0 ? hasty : patient; });
  const Duration took = timed([&] {
    run_threads(2, [&](std::uint32_t rank) {
      const auto done = comms[rank]->barrier();
      ASSERT_FALSE(done);
      EXPECT_THAT(done.error().message,
                  AnyOf(HasSubstr("barrier #1 waited"), HasSubstr("rank 0"), HasSubstr("rank 2")));
    });
  });
  EXPECT_LT(took, soon);
}

TEST_P(Failure, CallsThatDoNotMatchNameBoth) {
  struct Case {
    std::function<Result<>(Communicator&)> first, second;
    std::string first_name, second_name;
  };
  const auto reduce = [](std::size_t count, DType dtype, Reduction reduction) {
    return [=](Communicator& comm) {
      std::vector<std::int64_t> data(count);
      return comm.all_reduce(data.data(), data.data(), count, dtype, reduction);
    };
  };
  const auto barrier = [](Communicator& comm) { return comm.barrier(); };
  // A root need not wait for the others, and so hears of theirs in its next call.
  const auto broadcast = [](std::uint32_t root) {
    return [=](Communicator& comm) -> Result<> {
      std::array<char, 8> data{};
      MUSTER_TRY_VOID(comm.broadcast(data.data(), data.size(), root));
      return comm.barrier();
    };
  };
  const Case cases[] = {
      {reduce(10, DType::float32, Reduction::sum), reduce(11, DType::float32, Reduction::sum),
       "all_reduce #1 (10 x float32, sum)", "all_reduce #1 (11 x float32, sum)"},
      {reduce(10, DType::float32, Reduction::sum), reduce(10, DType::int32, Reduction::sum),
       "all_reduce #1 (10 x float32, sum)", "all_reduce #1 (10 x int32, sum)"},
      {reduce(10, DType::float32, Reduction::max), reduce(10, DType::float32, Reduction::min),
       "all_reduce #1 (10 x float32, max)", "all_reduce #1 (10 x float32, min)"},
      {reduce(1 << 20, DType::int64, Reduction::sum), reduce(5, DType::int64, Reduction::sum),
       "all_reduce #1 (1048576 x int64, sum)", "all_reduce #1 (5 x int64, sum)"},
      {reduce(1 << 20, DType::int64, Reduction::sum), barrier, "all_reduce #1 (1048576 x int64, sum)",
       "barrier #1"},
      {broadcast(0), broadcast(1), "broadcast #1 (8 bytes from rank 0)",
       "broadcast #1 (8 bytes from rank 1)"},
  };
  for (const Case& each : cases) {
    const Ranks comms = connect_ranks(2, GetParam(), patient);
    const Duration took = timed([&] {
      run_threads(2, [&](std::uint32_t rank) {
        const auto done = rank == 0 ? each.first(*comms[0]) : each.second(*comms[1]);
        ASSERT_FALSE(done);
        EXPECT_THAT(done.error().message, AllOf(HasSubstr("rank 0 called " + each.first_name),
                                                HasSubstr("rank 1 called " + each.second_name)));
      });
    });
    EXPECT_LT(took, soon);
  }
}

TEST_P(Failure, ARankThatLeavesEndsTheOthersWait) {
  Ranks comms = connect_ranks(2, GetParam(), patient);
  Result<> done;
  std::thread waiter([&] { done = sum_of_one(*comms[0]); });
  const Duration took = timed([&] {
    comms[1].reset();
    waiter.join();
  });
  EXPECT_LT(took, soon);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::peer_lost);
  EXPECT_THAT(done.error().message, HasSubstr("rank 1"));
}

TEST_P(Failure, ARankMayLeaveAsSoonAsItsLastCallReturns) {
  for (int round = 0; round < 20; ++round) {
    Ranks comms = connect_ranks(3, GetParam(), patient);
    run_threads(3, [&](std::uint32_t rank) {
      const auto done = sum_of_one(*comms[rank]);
      EXPECT_TRUE(done) << done.error().message;
      comms[rank].reset();
    });
  }
}

std::string name_of(const ::testing::TestParamInfo<Hosts>& hosts) {
  constexpr const char* names[] = {"OneHost", "EachItsOwn", "TwoInterleaved"};
  return names[static_cast<int>(hosts.param)];
}
const auto every_layout = ::testing::Values(Hosts::one, Hosts::each_its_own, Hosts::two_interleaved);
INSTANTIATE_TEST_SUITE_P(Layouts, Failure, every_layout, name_of);

// The rank that waits has looked for its peer's part for the last time when the peer makes the call and
// leaves.
std::function<void()> once_while_waiting;
void while_waiting() {
  if (const auto work = std::exchange(once_while_waiting, {})) work();
}

TEST(Leaving, BehindACallEndsItForNoRankThatStillWaitsInIt) {
  const std::vector<std::function<Result<>(Communicator&)>> calls = {
      [](Communicator& comm) { return comm.barrier(); },
      [bytes = Bytes(64)](Communicator& comm) mutable {
        return comm.broadcast(bytes.data(), bytes.size(), 1);
      }};
  for (const auto& call : calls) {
    const Ranks comms = connect_ranks(2, Hosts::one, patient);
    once_while_waiting = [&] {
      std::thread([&] {
        EXPECT_TRUE(call(*comms[1]));
        comms[1]->leave({Code::peer_lost, "worker 1 has left"});
      }).join();
    };
    set_while_waiting(&while_waiting);
    const auto done = call(*comms[0]);
    set_while_waiting(nullptr);
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_FALSE(once_while_waiting) << "it did not wait";
  }
}

TEST(Fork, AChildCanNeitherCallNorHarmItsParentsGroup) {
  Ranks comms = connect_ranks(2, Hosts::one, patient);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = !comms[0]->barrier();
    comms.clear();
    std::_Exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  run_threads(2, [&](std::uint32_t rank) { EXPECT_TRUE(comms[rank]->barrier()); });
}

TEST(Connect, NamesTheRankThatDoesNotCome) {
  for (const Hosts hosts : {Hosts::one, Hosts::each_its_own}) {
    Prepared prepared = prepare(2, hosts);
    const auto connected = connect({.epoch = 1, .job_id = 7, .rank = 0, .endpoints = prepared.endpoints},
                                   std::move(prepared.listeners[0]), {.connect_timeout = milliseconds(100)});
    ASSERT_FALSE(connected);
    EXPECT_EQ(connected.error().code, Code::timeout);
    EXPECT_THAT(connected.error().message,
                HasSubstr(fmt::format("waited 0.1 s for rank 1 (127.0.0.1:{})", prepared.endpoints[1].port)));
  }
}

TEST(Connect, EndsAtOnceWhenItIsStopped) {
  Prepared prepared = prepare(2, Hosts::each_its_own);
  net::StopSignal stop = net::StopSignal::create().value();
  std::thread watcher([&] { stop.raise(); });
  const Duration took = timed([&] {
    const auto connected = connect({.epoch = 1, .job_id = 7, .rank = 0, .endpoints = prepared.endpoints},
                                   std::move(prepared.listeners[0]),
                                   {.connect_timeout = std::chrono::seconds(60), .stop = &stop});
    ASSERT_FALSE(connected);
    EXPECT_EQ(connected.error().code, Code::aborted);
  });
  watcher.join();
  EXPECT_LT(took, soon);
}

TEST(Connect, RefusesAnotherEpochAndAnotherJobWithTheReason) {
  for (const Hosts hosts : {Hosts::one, Hosts::each_its_own})
    for (const bool other_epoch : {true, false}) {
      Prepared prepared = prepare(2, hosts);
      run_threads(2, [&](std::uint32_t rank) {
        Group group{.epoch = 5, .job_id = 7, .rank = rank, .endpoints = prepared.endpoints};
        if (rank == 1 && other_epoch) group.epoch = 4;
        if (rank == 1 && !other_epoch) group.job_id = 8;
        const auto connected = connect(group, std::move(prepared.listeners[rank]),
                                       {.connect_timeout = rank == 0 ? Duration(milliseconds(300))
                                                                     : Duration(std::chrono::seconds(60))});
        ASSERT_FALSE(connected);
        if (rank == 0) return;
        EXPECT_EQ(connected.error().code, Code::refused);
        EXPECT_THAT(connected.error().message,
                    AllOf(HasSubstr("rank 0"), HasSubstr(other_epoch ? "epoch 4 is not this group's epoch 5"
                                                                     : "is not this group's job")));
      });
    }
}

// Unauthorized peers of every kind come before the real rank: one is silent, one leaves, one speaks HTTP, one
// sends noise, one cuts a good hello short.
TEST(Connect, IsNotDisturbedByUnauthorizedPeers) {
  const std::uint64_t seed = entropy();
  fmt::print("seed {}\n", seed);
  const RandomStream random(seed, 0);
  Prepared prepared = prepare(2, Hosts::each_its_own);
  const net::Wait wait{.deadline = real_clock().now() + std::chrono::seconds(30)};
  std::vector<net::Socket> unauthorized;
  const auto send_unauthorized = [&](std::vector<std::byte> bytes) {
    unauthorized.push_back(net::Socket::connect({"127.0.0.1", prepared.endpoints[0].port}, wait).value());
    ASSERT_TRUE(unauthorized.back().send_all(bytes, wait));
  };
  send_unauthorized({});
  send_unauthorized({});
  unauthorized.pop_back();
  std::vector<std::byte> noise(4096);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<std::byte>(random.bits(i));
  send_unauthorized(noise);
  const std::string_view request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const auto* text = reinterpret_cast<const std::byte*>(request.data());
  send_unauthorized({text, text + request.size()});
  const auto hello =
      net::encode_frame({.type = 0x0200, .epoch = 1, .job_id = 7}, std::array<std::byte, 12>{});
  send_unauthorized({hello.begin(), hello.begin() + 70});
  for (int i = 0; i < 300; ++i) send_unauthorized({});  // more than are let in at once
  run_threads(2, [&](std::uint32_t rank) {
    auto connected = connect({.epoch = 1, .job_id = 7, .rank = rank, .endpoints = prepared.endpoints},
                             std::move(prepared.listeners[rank]), patient);
    ASSERT_TRUE(connected) << connected.error().message;
    EXPECT_TRUE((*connected)->barrier());
  });
}

TEST(Arguments, ThatCannotWorkAreRefusedAndHarmNothing) {
  const Ranks comms = connect_ranks(2, Hosts::one);
  char data[8] = {};
  EXPECT_THAT(comms[0]->all_reduce(data, data, 1, DType::float32, Reduction::band).error().message,
              HasSubstr("all_reduce of float32 with band"));
  EXPECT_EQ(comms[0]->broadcast(data, 8, 2).error().code, Code::invalid_argument);
  EXPECT_EQ(comms[0]->broadcast(data, SIZE_MAX, 0).error().code, Code::invalid_argument);
  EXPECT_EQ(comms[0]->all_reduce(data, data, SIZE_MAX / 2, DType::int64, Reduction::sum).error().code,
            Code::invalid_argument);
  run_threads(2, [&](std::uint32_t rank) { EXPECT_TRUE(comms[rank]->barrier()); });
  Group empty;
  EXPECT_FALSE(connect(empty, Listener::open("127.0.0.1").value()));
}

// ---- A rank that is killed in the middle of ending the group
// --------------------------------------------------

// The memory of a host's two ranks, as the first of them sees it.
struct HalfEnded {
  static LocalShape shape() {
    return {.ranks = {0, 1}, .local_rank = 0, .small_size_bytes = 4096, .chunk_size_bytes = 1 << 20};
  }
  LocalGroup group = LocalGroup::create(shape(), real_clock()).value();

  // What a rank does last: a process that is killed there.
  static void let_somebody_die_after(const std::function<void()>& last) {
    const pid_t child = ::fork();
    if (child == 0) {
      last();
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  Result<> wait_for_the_other() {
    const LocalGroup::Checks none{.own = [](const Call&) { return Result<>{}; },
                                  .all = [] { return Result<>{}; }};
    return group.sync(
        {.number = 1, .kind = CallKind::barrier}, none, [] {}, [] { return real_clock().now() + 20s; });
  }
  Result<> wait_for_a_message() {
    LocalPairs pairs(group);
    const std::function<Result<>()> nothing = [] { return Result<>{}; };
    std::vector<std::byte> bytes(8);
    const std::span<std::byte> piece(bytes);
    const ReceivedPieces pieces(&piece, 1);
    return pairs.receive(pieces, message_of(pieces, {.from = 1, .to = 0}),
                         {.clock = real_clock(),
                          .start = real_clock().now(),
                          .deadline = real_clock().now() + 20s,
                          .look = nothing});
  }
};

TEST(HalfEnded, GroupWakesWhoeverWaitsAfterTheReasonButBeforeTheFlag) {
  HalfEnded host;
  HalfEnded::let_somebody_die_after([&] {
    host.group.reason().give({Code::peer_lost, "worker 2 was killed"});
  });
  Result<> waited;
  EXPECT_LT(timed([&] { waited = host.wait_for_the_other(); }), soon);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().message, "worker 2 was killed");
  EXPECT_TRUE(host.group.aborted()) << "the next call fails, too";
}

TEST(HalfEnded, GroupWakesWhoeverWaitsBeforeTheReasonIsWhole) {
  HalfEnded host;
  HalfEnded::let_somebody_die_after([&] { host.group.reason().claim(); });
  Result<> waited;
  EXPECT_LT(timed([&] { waited = host.wait_for_the_other(); }), soon);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, Code::peer_lost);
  EXPECT_THAT(waited.error().message, Mentions("killed", "said"));
  host.group.abort({Code::peer_lost, "worker 1 was killed"});  // as who watches over it does
  EXPECT_TRUE(host.group.aborted());
}

TEST(HalfEnded, MessagesEndForWhoeverWaitsBeforeTheBells) {
  for (const bool is_whole : {true, false}) {
    HalfEnded host;
    HalfEnded::let_somebody_die_after([&] {
      SharedReason& reason = host.group.pairs().reason();
      if (reason.claim() && is_whole) reason.write({Code::peer_lost, "worker 2 was killed"});
    });
    Result<> waited;
    EXPECT_LT(timed([&] { waited = host.wait_for_a_message(); }), soon);
    ASSERT_FALSE(waited);
    EXPECT_THAT(waited.error().message, HasSubstr("was killed"));
  }
}

}  // namespace failure_test
}  // namespace
}  // namespace muster::collective
