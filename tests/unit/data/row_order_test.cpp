#include "muster/data/row_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "muster/base/base.h"

namespace muster::data {
namespace {

using ::testing::ElementsAre;

// A case of the property tests, drawn from the printed seed.
struct Case {
  std::uint64_t seed;
  std::uint64_t epoch;
  std::uint32_t rows;
  std::uint32_t num_shards;
};

std::vector<Case> random_cases() {
  const std::uint64_t seed = entropy();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  const RandomStream random(seed, hash_text("row order cases"));
  std::vector<Case> cases;
  for (std::uint64_t i = 0; i < 200; ++i)
    cases.push_back({.seed = random.bits(4 * i),
                     .epoch = random.below(4 * i + 1, 100),
                     .rows = 1 + static_cast<std::uint32_t>(random.below(4 * i + 2, 300)),
                     .num_shards = 1 + static_cast<std::uint32_t>(random.below(4 * i + 3, 40))});
  return cases;
}

std::vector<std::uint32_t> shard(const Case& test, std::uint32_t shard_id) {
  return row_order({.rows = test.rows, .shuffle = true, .num_shards = test.num_shards, .shard_id = shard_id},
                   test.seed, test.epoch);
}

TEST(RowOrder, DealsRowsRoundAndFillsUpFromTheFront) {
  const auto order = [](std::uint32_t shard_id) {
    return row_order({.rows = 10, .shuffle = false, .num_shards = 4, .shard_id = shard_id}, 1, 0);
  };
  EXPECT_THAT(order(0), ElementsAre(0, 4, 8));
  EXPECT_THAT(order(1), ElementsAre(1, 5, 9));
  EXPECT_THAT(order(2), ElementsAre(2, 6, 0));
  EXPECT_THAT(order(3), ElementsAre(3, 7, 1));
}

TEST(RowOrder, GivesEveryShardARowWhenThereAreMoreShardsThanRows) {
  for (std::uint32_t shard_id = 0; shard_id < 5; ++shard_id)
    EXPECT_THAT(row_order({.rows = 2, .shuffle = false, .num_shards = 5, .shard_id = shard_id}, 1, 0),
                ElementsAre(shard_id % 2));
}

TEST(RowOrder, HasShardsOfEqualLengthThatTogetherHoldEveryRow) {
  for (const Case& test : random_cases()) {
    std::map<std::uint32_t, int> seen;
    for (std::uint32_t shard_id = 0; shard_id < test.num_shards; ++shard_id) {
      const auto rows = shard(test, shard_id);
      ASSERT_EQ(rows.size(), (test.rows + test.num_shards - 1) / test.num_shards);
      for (const std::uint32_t row : rows) ++seen[row];
    }
    ASSERT_EQ(seen.size(), test.rows) << "seed " << test.seed;
    if (test.num_shards > test.rows) continue;
    int repeated = 0;
    for (const auto& [row, times] : seen) {
      ASSERT_LT(row, test.rows);
      ASSERT_LE(times, 2);
      repeated += times - 1;
    }
    ASSERT_LT(repeated, static_cast<int>(test.num_shards)) << "no more than fills up the last round";
  }
}

TEST(RowOrder, DealsTheShardsFromOneListThatAllRanksShuffleAlike) {
  for (const Case& test : random_cases()) {
    const auto all = row_order({.rows = test.rows}, test.seed, test.epoch);
    for (std::uint32_t shard_id = 0; shard_id < test.num_shards; ++shard_id) {
      const auto rows = shard(test, shard_id);
      for (std::size_t k = 0; k < rows.size(); ++k)
        ASSERT_EQ(rows[k], all[(test.num_shards * k + shard_id) % test.rows]) << "seed " << test.seed;
    }
  }
}

TEST(RowOrder, IsAnotherOneInEveryEpochAndForEverySeed) {
  const RowOrderOptions options{.rows = 1000};
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch) orders.insert(row_order(options, seed, epoch));
  EXPECT_EQ(orders.size(), 25U);
}

TEST(RowOrder, PutsEveryRowEverywhereAboutAsOften) {
  std::array<std::array<int, 6>, 6> times{};  // of row r at place p, over 6,000 epochs: 1,000 expected
  for (std::uint64_t epoch = 0; epoch < 6000; ++epoch) {
    const auto order = row_order({.rows = 6}, 1, epoch);
    for (std::size_t place = 0; place < 6; ++place) ++times[order[place]][place];
  }
  for (const auto& places : times)
    for (const int count : places) EXPECT_NEAR(count, 1000, 150);  // five standard deviations
}

// A job that is restarted with an old seed must see its rows in the old order: this is part of the contract.
TEST(RowOrder, StaysTheSameInEveryVersion) {
  EXPECT_THAT(row_order({.rows = 8}, 1, 0), ElementsAre(3, 7, 5, 6, 2, 1, 4, 0));
}

}  // namespace
}  // namespace muster::data
