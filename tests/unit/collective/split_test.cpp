// Groups that are split off another.
#include <gmock/gmock.h>

#include "ranks.h"

namespace muster::collective {
namespace {
namespace split_test {

using ::testing::HasSubstr;

class Split : public ::testing::TestWithParam<Hosts> {};

Ranks split_all(const Ranks& comms, const std::function<std::uint32_t(std::uint32_t)>& color) {
  Ranks made(comms.size());
  run_threads(static_cast<std::uint32_t>(comms.size()), [&](std::uint32_t rank) {
    auto part = comms[rank]->split(color(rank));
    ASSERT_TRUE(part) << part.error().message;
    made[rank] = *std::move(part);
  });
  return made;
}

float sum_of_world_ranks(Communicator& part, std::uint32_t world_rank) {
  float value = static_cast<float>(world_rank);
  EXPECT_TRUE(part.all_reduce(&value, &value, 1, DType::float32, Reduction::sum));
  return value;
}

TEST_P(Split, NumbersTheRanksOfEachColorInTheirOrder) {
  const Ranks comms = connect_ranks(6, GetParam());
  const Ranks parts = split_all(comms, [](std::uint32_t rank) { return rank % 3 == 1 ? 8u : 5u; });
  const std::uint32_t expected[] = {0, 0, 1, 2, 1, 3};
  run_threads(6, [&](std::uint32_t rank) {
    EXPECT_EQ(parts[rank]->rank(), expected[rank]);
    EXPECT_EQ(parts[rank]->size(), rank % 3 == 1 ? 2u : 4u);
    EXPECT_EQ(sum_of_world_ranks(*parts[rank], rank), rank % 3 == 1 ? 1 + 4 : 0 + 2 + 3 + 5);
  });
}

// As a placed and replicated job does: a worker is in the group of its replica and in that of its stage.
TEST_P(Split, GroupsOfRowsAndOfColumnsWorkAtTheSameTime) {
  const Ranks comms = connect_ranks(6, GetParam());
  const Ranks rows = split_all(comms, [](std::uint32_t rank) { return rank / 2; });
  const Ranks columns = split_all(comms, [](std::uint32_t rank) { return rank % 2; });
  run_threads(12, [&](std::uint32_t thread) {
    const std::uint32_t rank = thread / 2;
    for (std::uint8_t round = 0; round < 20; ++round) {
      if (thread % 2 == 0) {
        EXPECT_EQ(sum_of_world_ranks(*columns[rank], rank), rank % 2 == 0 ? 0 + 2 + 4 : 1 + 3 + 5);
        continue;
      }
      std::byte byte{round};
      const std::span<std::byte> piece(&byte, 1);
      const std::span<const std::byte> sent(piece);
      if (rank % 2 == 0)
        EXPECT_TRUE(rows[rank]->send(1, {&sent, 1}));
      else
        EXPECT_TRUE(rows[rank]->receive(0, {&piece, 1}));
      EXPECT_EQ(byte, std::byte{round});
    }
  });
}

TEST_P(Split, EachRankMayBeAlone) {
  const Ranks comms = connect_ranks(3, GetParam());
  const Ranks parts = split_all(comms, [](std::uint32_t rank) { return rank; });
  run_threads(3, [&](std::uint32_t rank) {
    EXPECT_EQ(parts[rank]->size(), 1u);
    EXPECT_EQ(sum_of_world_ranks(*parts[rank], rank), static_cast<float>(rank));
  });
}

TEST_P(Split, MakesGroupsThatEndByThemselves) {
  const Ranks comms = connect_ranks(4, GetParam());
  Ranks parts = split_all(comms, [](std::uint32_t rank) { return rank / 2; });
  parts[0]->abort({Code::peer_lost, "worker 1 was killed"});
  EXPECT_THAT(parts[0]->barrier().error().message, HasSubstr("worker 1 was killed"));
  parts[1].reset();
  run_threads(4, [&](std::uint32_t rank) {
    EXPECT_TRUE(comms[rank]->barrier());
    if (rank < 2) return;
    EXPECT_EQ(sum_of_world_ranks(*parts[rank], rank), 2 + 3);
  });
}

TEST_P(Split, EndsWhenTheGroupHasEnded) {
  const Ranks comms = connect_ranks(2, GetParam());
  comms[0]->abort({Code::peer_lost, "worker 1 was killed"});
  const auto part = comms[0]->split(0);
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().message, "worker 1 was killed");
}

std::string name_of(const ::testing::TestParamInfo<Hosts>& hosts) {
  constexpr const char* names[] = {"OneHost", "EachItsOwn", "TwoInterleaved"};
  return names[static_cast<int>(hosts.param)];
}
INSTANTIATE_TEST_SUITE_P(Layouts, Split,
                         ::testing::Values(Hosts::one, Hosts::each_its_own, Hosts::two_interleaved), name_of);

}  // namespace split_test
}  // namespace
}  // namespace muster::collective
