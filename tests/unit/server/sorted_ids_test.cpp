#include "muster/server/sorted_ids.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <vector>

namespace muster::server {
namespace {
namespace sorted_ids_test {

using ::testing::ElementsAre;
using Ids = std::vector<std::uint64_t>;

TEST(SortedIds, GoToTheirServersOnceEach) {
  const Owners owners({.name = "t", .rows = 10}, 2);
  const SortedIds ids(Ids{7, 1, 9, 7, 0}, owners, 2);
  EXPECT_THAT(ids.ids(0), ElementsAre(0, 1));
  EXPECT_THAT(ids.ids(1), ElementsAre(7, 9));
  std::vector<float> batch(5);
  ids.spread(0, std::vector<float>{10, 11}, 1, batch);
  ids.spread(1, std::vector<float>{17, 19}, 1, batch);
  EXPECT_THAT(batch, ElementsAre(17, 11, 19, 17, 10));
}

TEST(SortedIds, AddTheGradientsOfEqualIdsInTheirOrder) {
  const Owners owners({.name = "t", .rows = 10}, 1);
  const SortedIds ids(Ids{3, 2, 3, 3}, owners, 1);
  const float large = 1 << 25;  // the order shows in the rounding
  std::vector<float> rows(4);
  ids.gather(0, std::vector<float>{large, 1, 8, 9, 1, 2, 1, 3}, 2, rows);
  EXPECT_THAT(rows, ElementsAre(8, 9, (large + 1.0F) + 1.0F, 6));
}

TEST(SortedIds, MayBeNone) {
  const Owners owners({.name = "t", .rows = 10}, 3);
  const SortedIds ids(Ids{}, owners, 3);
  for (std::uint32_t server = 0; server < 3; ++server) EXPECT_TRUE(ids.ids(server).empty());
}

TEST(SortedIds, SpreadAnyIdsOverServersOfATableWithoutVocabulary) {
  const Owners owners({.name = "t", .sharding = Sharding::hash}, 5);
  const RandomStream random(1, 2);
  Ids drawn(2000);
  for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = random.bits(i) >> (random.bits(i + 5000) % 64);
  const SortedIds ids(drawn, owners, 5);
  std::vector<float> batch(drawn.size(), -1), expected;
  std::map<std::uint64_t, float> value;
  for (const std::uint64_t id : drawn) value[id] = static_cast<float>(value.size());
  for (const std::uint64_t id : drawn) expected.push_back(value[id]);
  std::size_t all = 0;
  for (std::uint32_t server = 0; server < 5; ++server) {
    std::vector<float> rows;
    for (const std::uint64_t id : ids.ids(server)) {
      EXPECT_EQ(owners.of(id), server);
      rows.push_back(value[id]);
    }
    EXPECT_TRUE(std::is_sorted(ids.ids(server).begin(), ids.ids(server).end()));
    ids.spread(server, rows, 1, batch);
    all += rows.size();
  }
  EXPECT_EQ(all, value.size());
  EXPECT_EQ(batch, expected);
}

}  // namespace sorted_ids_test
}  // namespace
}  // namespace muster::server
