// A pass that is gone on with in other shards: each row of it comes once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "muster/data/data.h"

namespace muster::data {
namespace {
namespace rows_before_test {

using ::testing::Each;

struct Layout {
  std::int64_t shards = 1;
  std::int64_t batch = 1;
};

struct Rows {
  std::int64_t count = 0;
  bool shuffle = true;
  bool by_sampler = false;
};

Dataset shard_of(const Rows& rows, const Layout& layout, std::int64_t index) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(rows.count));
  std::iota(numbers.begin(), numbers.end(), 0);
  RowOptions options{.shuffle = rows.shuffle, .num_shards = layout.shards, .shard_id = index};
  if (rows.by_sampler)
    options = {.sampler = distributed_sampler(
                   {.num_shards = layout.shards, .shard_id = index, .shuffle = rows.shuffle})};
  return slices({"x"}, {Tensor::from<std::int64_t>(numbers, {rows.count})}, options)
      .rename({"x"}, {"y"})
      .batch(layout.batch)
      .repeat(1);
}

// Counts the rows of the next items of a pass of all shards; nothing given: of all that are left. How many
// items each shard gave.
std::int64_t read(const Rows& rows, const Layout& layout, std::uint32_t before,
                  std::optional<std::int64_t> items, std::vector<int>& seen) {
  std::int64_t given = 0;
  for (std::int64_t index = 0; index < layout.shards; ++index) {
    Iterator pass = shard_of(rows, layout, index)
                        .iterate({.seed = 5, .epoch = 3, .rows_before = before, .padding = false})
                        .value();
    given = 0;
    for (; !items || given < *items; ++given) {
      const auto item = pass.next().value();
      if (!item) break;
      const std::span numbers(item->front().data<std::int64_t>(),
                              static_cast<std::size_t>(item->front().elements()));
      for (const std::int64_t row : numbers) ++seen[static_cast<std::size_t>(row)];
    }
  }
  return given;
}

TEST(RowsBefore, EachRowComesOnceHoweverOftenTheShardsChange) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random);
  };
  for (int round = 0; round < 200; ++round) {
    const Rows rows{.count = draw(1, 60), .shuffle = draw(0, 1) == 1, .by_sampler = draw(0, 1) == 1};
    std::vector<int> seen(static_cast<std::size_t>(rows.count), 0);
    std::uint32_t before = 0;
    while (true) {
      const Layout layout{.shards = draw(1, 5), .batch = draw(1, 4)};
      const Dataset one = shard_of(rows, layout, 0);
      ASSERT_EQ(one.ordered_rows()->list, rows.count);
      ASSERT_EQ(one.ordered_rows()->an_item, layout.batch);
      const std::int64_t a_step = layout.shards * layout.batch;
      const std::int64_t steps = (rows.count - before) / a_step;
      const std::int64_t made = draw(0, steps);
      if (made * a_step + before >= rows.count || draw(0, 3) == 0) {
        read(rows, layout, before, std::nullopt, seen);
        break;
      }
      ASSERT_EQ(read(rows, layout, before, made, seen), made);
      before += static_cast<std::uint32_t>(made * a_step);
    }
    ASSERT_THAT(seen, Each(1)) << rows.count << " rows";
  }
}

TEST(RowsBefore, TellHowManyItemsAreLeft) {
  for (const Layout layout : {Layout{1, 1}, Layout{3, 2}, Layout{4, 5}})
    for (const std::uint32_t before : {0U, 1U, 7U, 22U}) {
      const Dataset one = shard_of({.count = 23}, layout, 0);
      Iterator pass = one.iterate({.rows_before = before}).value();
      std::int64_t items = 0;
      while (pass.next().value()) ++items;
      EXPECT_EQ(one.size_behind(before), items);
    }
}

TEST(RowsBefore, AreUnknownBehindWhatMixesPicksOrRepeatsRows) {
  const Dataset rows = shard_of({.count = 23}, {.shards = 2, .batch = 1}, 0);
  EXPECT_TRUE(rows.ordered_rows());
  EXPECT_FALSE(rows.shuffle(4).ordered_rows());
  EXPECT_FALSE(rows.repeat(2).ordered_rows());
  EXPECT_FALSE(rows.take(3).ordered_rows());
  EXPECT_FALSE(rows.skip(3).ordered_rows());
  EXPECT_FALSE(Dataset::zip({rows, rows.rename({"y"}, {"z"})}).ordered_rows());
  EXPECT_FALSE(slices({"x"}, {Tensor::from<std::int64_t>(std::array<std::int64_t, 4>{1, 2, 3, 4}, {4})},
                      {.num_samples = 1, .num_shards = 2, .shard_id = 0})
                   .ordered_rows());
}

}  // namespace rows_before_test
}  // namespace
}  // namespace muster::data
