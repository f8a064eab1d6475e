#include "muster/data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "digits.h"
#include "muster/data/data.h"
#include "tests/unit/base/mentions.h"

namespace muster::data {
namespace {

using namespace muster::data::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const std::vector<std::uint32_t> labels = {2, 0, 1, 0, 2, 2, 1, 0};
const SourceFacts facts{.rows = 8, .labels = labels};

std::vector<std::uint32_t> rows_of(const SamplerPtr& sampler, std::uint64_t epoch = 0) {
  const auto rows = sampler->order(facts, 1, epoch);
  EXPECT_EQ(static_cast<std::int64_t>(rows.size()), sampler->size(facts).value());
  return rows;
}

std::string error_of(const SamplerPtr& sampler) {
  const auto size = sampler->size(facts);
  return size ? "no error" : size.error().message;
}

TEST(SequentialSampler, TakesRowsFromAPlaceOn) {
  EXPECT_THAT(rows_of(sequential_sampler(5)), ElementsAre(5, 6, 7));
  EXPECT_THAT(rows_of(sequential_sampler(2, 3)), ElementsAre(2, 3, 4));
  EXPECT_THAT(error_of(sequential_sampler(8)), Mentions("start_index", "is 8", "be 0", "to 7"));
  EXPECT_THAT(error_of(sequential_sampler(0, 0)), HasSubstr("num_samples is 0"));
}

TEST(RandomSampler, TakesEachRowOnceUnlessTold) {
  EXPECT_THAT(rows_of(random_sampler()), UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_NE(rows_of(random_sampler()), rows_of(random_sampler(), 1));
  EXPECT_EQ(rows_of(random_sampler({.num_samples = 3})).size(), 3U);
  EXPECT_EQ(rows_of(random_sampler({.replacement = true, .num_samples = 100})).size(), 100U);
  EXPECT_THAT(error_of(random_sampler({.num_samples = 9})), HasSubstr("there are 8 rows"));
}

TEST(DistributedSampler, DealsAsTheSourcesDo) {
  EXPECT_THAT(rows_of(distributed_sampler({.num_shards = 3, .shard_id = 1, .shuffle = false})),
              ElementsAre(1, 4, 7));
  EXPECT_THAT(error_of(distributed_sampler({.num_shards = 3, .shard_id = 3})), HasSubstr("0 to 2"));
}

TEST(SubsetSampler, TakesTheRowsOfTheseNumbers) {
  EXPECT_THAT(rows_of(subset_sampler({5, 1, 5})), ElementsAre(5, 1, 5));
  EXPECT_THAT(rows_of(subset_random_sampler({5, 1, 3})), UnorderedElementsAre(5, 1, 3));
  EXPECT_THAT(error_of(subset_sampler({8})), Mentions("index 8", "range"));
  EXPECT_THAT(error_of(subset_sampler({-1})), Mentions("-1", "range"));
  EXPECT_THAT(error_of(subset_sampler({})), HasSubstr("no indices"));
}

std::vector<std::uint32_t> labels_of(const std::vector<std::uint32_t>& rows) {
  std::vector<std::uint32_t> of;
  for (const std::uint32_t row : rows) of.push_back(labels[row]);
  return of;
}

TEST(PkSampler, DrawsAsManyRowsOfEachClassAnewForEachPass) {
  const SamplerPtr pairs = pk_sampler({.num_val = 2});
  std::set<std::uint32_t> seen;
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
    const auto rows = rows_of(pairs, epoch);
    EXPECT_THAT(labels_of(rows), ElementsAre(0, 0, 1, 1, 2, 2));
    seen.insert(rows.begin(), rows.end());
  }
  EXPECT_EQ(seen.size(), labels.size());
  EXPECT_EQ(rows_of(pairs, 7), rows_of(pairs, 7));
  EXPECT_THAT(labels_of(rows_of(pk_sampler({.num_val = 3, .num_class = 2}))), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(labels_of(rows_of(pk_sampler({.num_val = 2, .num_samples = 3}))), ElementsAre(0, 0, 1));
  EXPECT_THAT(pk_sampler({})->size({.rows = 3}).error().message, HasSubstr("needs a source with labels"));
}

TEST(PkSampler, ShufflesTheClasses) {
  const SamplerPtr shuffled = pk_sampler({.num_val = 2, .shuffle = true});
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) orders.insert(labels_of(rows_of(shuffled, epoch)));
  EXPECT_EQ(orders.size(), 6U);
  for (const auto& order : orders) EXPECT_THAT(order, UnorderedElementsAre(0, 0, 1, 1, 2, 2));
}

TEST(WeightedRandomSampler, DrawsByWeight) {
  std::map<std::uint32_t, int> times;
  for (const std::uint32_t row :
       rows_of(weighted_random_sampler({.weights = {0, 1, 3}, .num_samples = 4000})))
    ++times[row];
  EXPECT_EQ(times.count(0), 0U);
  EXPECT_NEAR(times[1], 1000, 140);  // five standard deviations
  EXPECT_NEAR(times[2], 3000, 140);
  EXPECT_THAT(
      rows_of(weighted_random_sampler({.weights = {0, 1, 3}, .num_samples = 2, .replacement = false})),
      UnorderedElementsAre(1, 2));
  EXPECT_THAT(error_of(weighted_random_sampler({.weights = {0, 1}, .num_samples = 2, .replacement = false})),
              Mentions("1 rows", "weight", "above 0"));
  EXPECT_THAT(error_of(weighted_random_sampler({.weights = {0, -1}})), HasSubstr("-1"));
}

TEST(Samplers, StandInForTheOtherChoicesOfASource) {
  const auto files = digits_folder(10);
  const auto dataset = mnist({.folder = "/digits", .sampler = subset_sampler({7, 2})}, files);
  EXPECT_EQ(dataset.size().value(), 2);
  EXPECT_THAT(testing::rows_of(items_of(dataset)), ElementsAre(7, 2));
  EXPECT_THAT(mnist({.folder = "/digits", .shuffle = true, .sampler = subset_sampler({7})}, files)
                  .status()
                  .error()
                  .message,
              Mentions("sampler", "come"));
  EXPECT_THAT(mnist({.folder = "/digits", .sampler = subset_sampler({10})}, files).status().error().message,
              Mentions("index 10", "numbered 0", "to 9"));
}

}  // namespace
}  // namespace muster::data
