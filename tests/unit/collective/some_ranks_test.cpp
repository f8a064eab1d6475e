// Groups that some ranks of another one call for.
#include <gmock/gmock.h>

#include "ranks.h"

#include "tests/unit/base/mentions.h"

namespace muster::collective {
namespace {
namespace some_ranks_test {

// A group of all ranks, whose endpoints each rank knows.
struct World {
  explicit World(std::uint32_t ranks, Hosts hosts) {
    Prepared prepared = prepare(ranks, hosts);
    endpoints = prepared.endpoints;
    for (auto& group : connect_ranks(std::move(prepared), [](std::uint32_t) { return patient; }))
      calls.push_back(std::make_unique<AsyncGroup>(std::move(group)));
  }
  Result<std::unique_ptr<Communicator>> connect(std::uint32_t rank, const Members& members,
                                                const Options& options = patient) {
    const Group origin{.epoch = 1, .job_id = 7, .rank = rank, .endpoints = endpoints};
    return connect_some(*calls[rank], origin, members, Listener::open("127.0.0.1").value(), options);
  }

  std::vector<Endpoint> endpoints;
  std::vector<std::unique_ptr<AsyncGroup>> calls;
};

float sum_in(Communicator& group, float value) {
  EXPECT_TRUE(group.all_reduce(&value, &value, 1, DType::float32, Reduction::sum));
  return value;
}

class SomeRanks : public ::testing::TestWithParam<Hosts> {};

TEST_P(SomeRanks, AreNumberedInTheOrderGivenAndTheOthersTakeNoPart) {
  World world(4, GetParam());
  const Members members{.name = "some", .ranks = {3, 0, 2}};
  run_threads(4, [&](std::uint32_t rank) {
    if (rank == 1) return;
    auto made = world.connect(rank, members);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ((*made)->size(), 3u);
    EXPECT_EQ(members.ranks[(*made)->rank()], rank);
    EXPECT_EQ(sum_in(**made, static_cast<float>(rank)), 5);
  });
}

// 0 with 1, 1 with 2, 2 with 0, each asked for in an order that a rank which waits in the first never ends.
TEST_P(SomeRanks, OfManyGroupsMeetAtTheSameTime) {
  World world(3, GetParam());
  run_threads(6, [&](std::uint32_t thread) {
    const std::uint32_t rank = thread / 2;
    const std::uint32_t low = thread % 2 == 0 ? rank : (rank + 2) % 3, high = (low + 1) % 3;
    const Members members{.name = "pair " + std::to_string(low), .ranks = {low, high}};
    auto made = world.connect(rank, members);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(sum_in(**made, static_cast<float>(rank)), static_cast<float>(low + high));
  });
}

TEST_P(SomeRanks, ThatDisagreeHearWhatBothHave) {
  World world(3, GetParam());
  run_threads(3, [&](std::uint32_t rank) {
    const Members members{.name = "odd",
                          .ranks = rank == 2 ? std::vector{1u, 2u, 0u} : std::vector{0u, 1u, 2u}};
    const auto made = world.connect(rank, members);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().message, Mentions("'odd'", "0, 1, 2 on rank", "1, 2, 0 on rank"));
  });
}

TEST_P(SomeRanks, ThatDoNotComeAreMissedAtTheDeadline) {
  World world(2, GetParam());
  const auto made =
      world.connect(0, {.name = "pair", .ranks = {0, 1}}, {.connect_timeout = std::chrono::milliseconds(50)});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::timeout);
  EXPECT_THAT(made.error().message, Mentions("group 'pair' (ranks 0, 1)", "rank 1"));
}

TEST(MembersOfAGroup, MustExistOnceAndHaveTheCallerAmongThem) {
  World world(3, Hosts::one);
  for (const std::vector<std::uint32_t>& ranks :
       std::vector<std::vector<std::uint32_t>>{{}, {0, 3}, {0, 1, 0}, {1, 2}}) {
    const auto made = world.connect(0, {.name = "wrong", .ranks = ranks});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::invalid_argument);
    EXPECT_THAT(made.error().message, Mentions("group 'wrong'"));
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, SomeRanks,
                         ::testing::Values(Hosts::one, Hosts::each_its_own, Hosts::two_interleaved));

}  // namespace some_ranks_test
}  // namespace
}  // namespace muster::collective
