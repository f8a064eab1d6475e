// Every collective call over every layout: a deadline, an abort, a peer that is killed or stopped in it, and
// ranks that call something else.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include "forked.h"
#include "ranks.h"

#include "tests/unit/base/mentions.h"

namespace muster::collective {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr std::size_t floats_each = 50'000;  // more than goes whole to all ranks

struct NamedCall {
  const char* name;
  Result<> (*make)(Communicator&);
};

// Buffers of so many floats for each rank.
struct Buffers {
  explicit Buffers(const Communicator& group)
      : in(group.size() * floats_each, 1), out(group.size() * floats_each) {
    for (std::uint32_t rank = 0; rank < group.size(); ++rank) {
      sent.emplace_back(std::as_bytes(std::span(in).subspan(rank * floats_each, floats_each)));
      places.emplace_back(std::as_writable_bytes(std::span(out).subspan(rank * floats_each, floats_each)));
    }
  }
  std::vector<float> in, out;
  std::vector<std::span<const std::byte>> sent;
  std::vector<std::span<std::byte>> places;
};

constexpr NamedCall every_call[] = {
    {"all_reduce",
     [](Communicator& group) {
       Buffers data(group);
       return group.all_reduce(data.in.data(), data.out.data(), floats_each, DType::float32, Reduction::sum);
     }},
    {"reduce",
     [](Communicator& group) {
       Buffers data(group);
       return group.reduce(data.in.data(), data.out.data(), floats_each, DType::float32, Reduction::sum, 1);
     }},
    {"reduce_scatter",
     [](Communicator& group) {
       Buffers data(group);
       return group.reduce_scatter(data.in.data(), data.out.data(), floats_each, DType::float32,
                                   Reduction::sum);
     }},
    {"broadcast",
     [](Communicator& group) {
       Buffers data(group);
       return group.broadcast(data.in.data(), floats_each * sizeof(float), 2);
     }},
    {"broadcast",  // one for which the root need not wait
     [](Communicator& group) {
       std::array<float, 100> few{};
       return group.broadcast(few.data(), sizeof(few), 2);
     }},
    {"all_gather",
     [](Communicator& group) {
       Buffers data(group);
       return group.all_gather(data.in.data(), data.out.data(), floats_each * sizeof(float));
     }},
    {"all_gather",
     [](Communicator& group) {
       Buffers data(group);
       return group.all_gather(data.sent[group.rank()], data.places);
     }},
    {"all_to_all",
     [](Communicator& group) {
       Buffers data(group);
       return group.all_to_all(data.sent, data.places);
     }},
    {"all_to_all",
     [](Communicator& group) {
       Buffers data(group);
       return group.all_to_all_uneven(data.sent, data.places);
     }},
    {"gather",
     [](Communicator& group) {
       Buffers data(group);
       return group.gather(data.sent[0], group.rank() == 2 ? ReceivedPieces(data.places) : ReceivedPieces{},
                           2);
     }},
    {"scatter",
     [](Communicator& group) {
       Buffers data(group);
       return group.scatter(group.rank() == 2 ? SentPieces(data.sent) : SentPieces{}, data.places[0], 2);
     }},
    {"barrier", [](Communicator& group) { return group.barrier(); }},
};

class EveryCall : public ::testing::TestWithParam<std::tuple<std::size_t, Hosts>> {
 protected:
  const NamedCall& call() const { return every_call[std::get<0>(GetParam())]; }
  Hosts hosts() const { return std::get<1>(GetParam()); }
};

TEST_P(EveryCall, NamesItselfAndTheMissingRankAtItsDeadline) {
  const Ranks groups = connect_ranks(3, hosts(), hasty);
  run_threads(3, [&](std::uint32_t rank) { ASSERT_TRUE(groups[rank]->barrier()); });
  const auto done = call().make(*groups[0]);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::timeout);
  EXPECT_THAT(done.error().message, Mentions(fmt::format("{} #2", call().name), "waited 0"));
  EXPECT_THAT(done.error().message, AnyOf(HasSubstr("rank 1"), HasSubstr("rank 2")));
}

TEST_P(EveryCall, EndsForAllWhenOneAborts) {
  const Ranks groups = connect_ranks(3, hosts(), patient);
  std::array<Result<>, 2> ends;
  std::thread waiter([&] { ends[1] = call().make(*groups[1]); });
  std::thread other([&] { ends[0] = call().make(*groups[0]); });
  const TimePoint start = real_clock().now();
  groups[2]->abort({Code::aborted, "rank 2 gave up"});
  waiter.join();
  other.join();
  EXPECT_LT(real_clock().now() - start, soon);
  for (const auto& end : ends) EXPECT_FALSE(end);
}

// Rank 2 is in the call, or on the way into it, when it dies.
TEST_P(EveryCall, EndsWhenAPeerIsKilled) {
  const auto make = call().make;
  Forked ranks(3, hosts(), patient, [make](const Forked::Child& child) {
    for (;;)
      if (const auto done = make(child.comm); !done) return done.error().code == Code::peer_lost ? 0 : 3;
  });
  for (int round = 0; round < 20; ++round) ASSERT_TRUE(make(ranks.comm()));
  ::kill(ranks.child(2), SIGKILL);
  (void)ranks.wait_for(2);
  // What the cluster does when it learns of the death.
  std::thread watcher([&] { ranks.comm().abort({Code::peer_lost, "worker 2 was killed"}); });
  const TimePoint start = real_clock().now();
  while (make(ranks.comm())) ASSERT_LT(real_clock().now() - start, soon);
  EXPECT_LT(real_clock().now() - start, soon);
  watcher.join();
  const int status = ranks.wait_for(1);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// A stopped one is no dead one: the call waits, and goes on with it.
TEST_P(EveryCall, WaitsForAPeerThatIsStopped) {
  const auto make = call().make;
  Forked ranks(3, hosts(), patient, [make](const Forked::Child& child) {
    for (int round = 0; round < 8; ++round)
      if (!make(child.comm)) return 3;
    return child.comm.barrier() ? 0 : 4;
  });
  ASSERT_TRUE(make(ranks.comm()));
  ::kill(ranks.child(2), SIGSTOP);
  std::thread caller([&] {
    for (int round = 1; round < 8; ++round) ASSERT_TRUE(make(ranks.comm()));
    EXPECT_TRUE(ranks.comm().barrier());
  });
  int status = 0;
  EXPECT_EQ(::waitpid(ranks.child(2), &status, WUNTRACED), ranks.child(2));
  EXPECT_TRUE(WIFSTOPPED(status));
  ::kill(ranks.child(2), SIGCONT);
  caller.join();
  for (const std::uint32_t rank : {1u, 2u}) EXPECT_EQ(ranks.wait_for(rank), 0);
}

TEST_P(EveryCall, NamesBothSidesWhereAnotherRankCallsSomethingElse) {
  const Ranks groups = connect_ranks(3, hosts(), patient);
  const bool is_broadcast = std::string_view(call().name) == "broadcast";
  const std::string_view other = is_broadcast ? "barrier" : "broadcast";
  std::array<Result<>, 3> ends;
  run_threads(3, [&](std::uint32_t rank) {
    float value = 0;
    if (rank != 1)
      ends[rank] = call().make(*groups[rank]);
    else
      ends[1] = is_broadcast ? groups[1]->barrier() : groups[1]->broadcast(&value, sizeof(value), 0);
    if (ends[rank]) ends[rank] = groups[rank]->barrier();  // a root that need not wait has gone on
  });
  // Who hears that the group has ended before it has compared does not know why.
  int named = 0;
  std::string all;
  for (const auto& end : ends) {
    ASSERT_FALSE(end);
    all += end.error().message + "\n";
    named += end.error().message.find(call().name) != std::string::npos &&
             end.error().message.find(other) != std::string::npos;
  }
  EXPECT_GE(named, 1) << all;
}

std::string name_of_call(const ::testing::TestParamInfo<std::tuple<std::size_t, Hosts>>& info) {
  constexpr const char* hosts[] = {"OneHost", "EachItsOwn", "TwoInterleaved"};
  return fmt::format("{}{}{}", every_call[std::get<0>(info.param)].name, std::get<0>(info.param),
                     hosts[static_cast<int>(std::get<1>(info.param))]);
}

INSTANTIATE_TEST_SUITE_P(Calls, EveryCall,
                         ::testing::Combine(::testing::Range(std::size_t{0}, std::size(every_call)),
                                            ::testing::Values(Hosts::one, Hosts::each_its_own,
                                                              Hosts::two_interleaved)),
                         name_of_call);

}  // namespace
}  // namespace muster::collective
