#include "muster/server/sharding.h"

#include <gmock/gmock.h>

namespace muster::server {
namespace {
namespace sharding_test {

TEST(Sharding, GivesTheRemainderToTheFirstServers) {
  EXPECT_EQ(range_of(10, {.server = 0, .servers = 4}), (RowRange{0, 3}));
  EXPECT_EQ(range_of(10, {.server = 1, .servers = 4}), (RowRange{3, 6}));
  EXPECT_EQ(range_of(10, {.server = 2, .servers = 4}), (RowRange{6, 8}));
  EXPECT_EQ(range_of(10, {.server = 3, .servers = 4}), (RowRange{8, 10}));
}

TEST(Sharding, FindsTheOwnerOfEveryRowOfEveryRange) {
  for (const std::uint64_t rows : {1, 2, 7, 64, 1000})
    for (std::uint32_t servers = 1; servers <= 9; ++servers) {
      const Owners owners({.name = "t", .rows = rows}, servers);
      for (std::uint32_t server = 0; server < servers; ++server)
        for (std::uint64_t id = owners.range(server).begin; id < owners.range(server).end; ++id)
          ASSERT_EQ(owners.of(id), server) << rows << " rows, " << servers << " servers, row " << id;
    }
}

TEST(Sharding, SpreadsIdsOfAnyKindEvenly) {
  const Owners owners({.name = "t", .sharding = Sharding::hash}, 3);
  for (const std::uint64_t step : {std::uint64_t{1}, std::uint64_t{1} << 32, std::uint64_t{4096}}) {
    std::vector<int> found(3);
    for (std::uint64_t i = 0; i < 3000; ++i) ++found[owners.of(i * step)];
    EXPECT_THAT(found, ::testing::Each(::testing::AllOf(::testing::Gt(900), ::testing::Lt(1100)))) << step;
  }
}

TEST(Sharding, PutsSmallParametersOnServersByTheirNumber) {
  EXPECT_EQ(Owners({.name = "b", .sharding = Sharding::whole, .home = 5, .rows = 8}, 3).of(7), 2U);
  EXPECT_EQ(Owners({.name = "b", .sharding = Sharding::whole, .home = 5, .rows = 8}, 3).range(2).size(), 8U);
  EXPECT_EQ(Owners({.name = "b", .sharding = Sharding::whole, .home = 5, .rows = 8}, 3).range(1).size(), 0U);
}

}  // namespace sharding_test
}  // namespace
}  // namespace muster::server
