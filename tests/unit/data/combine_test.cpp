// shuffle, zip, concat, filter, project, rename, and rows of the caller's own.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>

#include "digits.h"
#include "muster/data/data.h"
#include "muster/data/workers.h"
#include "photographs.h"
#include "tests/unit/base/mentions.h"

namespace muster::data {
namespace {
namespace combine_test {

using namespace muster::data::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const Dataset& dataset) {
  const auto status = dataset.status();
  return status ? "no error" : status.error().message;
}

// Rows 0 to `rows` - 1 in one column of int32.
Dataset numbers(int rows, const std::string& name = "number") {
  std::vector<std::int32_t> values(static_cast<std::size_t>(rows));
  for (int i = 0; i < rows; ++i) values[static_cast<std::size_t>(i)] = i;
  return slices({name}, {Tensor::from<std::int32_t>(std::span<const std::int32_t>(values), {rows})},
                {.shuffle = false});
}

std::vector<int> values_of(const Dataset& dataset, std::size_t column = 0, std::uint64_t epoch = 0) {
  std::vector<int> values;
  for (const Item& item : items_of(dataset, 1, epoch))
    for (const std::int32_t value : item[column].span<std::int32_t>()) values.push_back(value);
  return values;
}

class Even final : public Operation {
 public:
  std::string name() const override { return "even"; }
  Result<std::vector<Tensor>> apply(std::span<const Tensor> values, Draw) const override {
    return std::vector{Tensor::scalar<bool>(*values[0].data<std::int32_t>() % 2 == 0)};
  }
};

Dataset shard_of_numbers(int rows, std::int64_t count, std::int64_t index) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(rows));
  for (int i = 0; i < rows; ++i) values[static_cast<std::size_t>(i)] = i;
  return slices({"number"}, {Tensor::from<std::int32_t>(std::span<const std::int32_t>(values), {rows})},
                {.num_shards = count, .shard_id = index});
}

TEST(Padding, LeftOutGivesEachRowFromOneShard) {
  for (const int rows : {2, 10, 12})
    for (const std::int64_t shards : {1, 3, 4}) {
      std::vector<std::int32_t> all;
      for (std::int64_t shard = 0; shard < shards; ++shard) {
        const Dataset dataset = shard_of_numbers(rows, shards, shard).shuffle(4).batch(2);
        auto pass = dataset.iterate({.seed = 5, .padding = false}).value();
        while (const auto item = pass.next().value())
          for (const std::int32_t value : (*item)[0].span<std::int32_t>()) all.push_back(value);
      }
      std::sort(all.begin(), all.end());
      ASSERT_EQ(all.size(), static_cast<std::size_t>(rows)) << rows << " rows in " << shards << " shards";
      for (int row = 0; row < rows; ++row) EXPECT_EQ(all[static_cast<std::size_t>(row)], row);
    }
}

TEST(Padding, IsNoRowOfASampleOfAShard) {
  const Dataset two =
      slices({"number"}, {Tensor::from<std::int32_t>(std::vector<std::int32_t>{0, 1, 2, 3, 4}, {5})},
             {.shuffle = false, .num_samples = 2, .num_shards = 2, .shard_id = 1});
  auto pass = two.iterate({.padding = false}).value();
  int rows = 0;
  while (pass.next().value()) ++rows;
  EXPECT_EQ(rows, 2);
}

TEST(Shard, IsWhatTheSourceOrTheScriptSays) {
  EXPECT_EQ(numbers(4).batch(2).shard(), Shard{});
  EXPECT_EQ(shard_of_numbers(9, 3, 2).batch(2).repeat(2).shard(), (Shard{.count = 3, .index = 2}));
  EXPECT_EQ(numbers(4).mark_shard(2, 1).batch(2).shard(), (Shard{.count = 2, .index = 1}));
  EXPECT_THAT(error_of(numbers(4).mark_shard(2, 2)), HasSubstr("shard_id is 2, it must be 0 to 1"));
  EXPECT_THAT(error_of(shard_of_numbers(9, 3, 2).mark_shard(3, 2)), HasSubstr("shard 2 of 3 already"));
}

TEST(Shard, IsMixedWhereWhatIsJoinedWasCutInDifferentWays) {
  EXPECT_TRUE(Dataset::concat({shard_of_numbers(9, 3, 2), numbers(4)}).shard().is_mixed);
  EXPECT_FALSE(
      Dataset::concat({shard_of_numbers(9, 3, 2), shard_of_numbers(7, 3, 2)}).batch(2).shard().is_mixed);
}

TEST(Shuffle, YieldsEveryRowOnceAndAnotherOrderInEachEpoch) {
  const auto shuffled = numbers(100).shuffle(10);
  const auto first = values_of(shuffled), second = values_of(shuffled, 0, 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, values_of(shuffled));
  for (auto order : {first, second}) {
    EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
    for (int i = 0; i < 100; ++i)
      EXPECT_LT(order[static_cast<std::size_t>(i)], i + 10) << "from beyond the buffer";
    std::sort(order.begin(), order.end());
    for (int i = 0; i < 100; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
  }
}

TEST(Shuffle, HasTheSameOrderInBatchesAsInRows) {
  const auto shuffled = numbers(100).shuffle(7);
  EXPECT_EQ(values_of(shuffled), values_of(shuffled.batch(32)));
  EXPECT_EQ(values_of(shuffled), values_of(shuffled.batch(1)));
}

TEST(Shuffle, OfAWholeDatasetMakesEveryOrderAboutAsOften) {
  std::map<std::vector<int>, int> times;
  const auto shuffled = numbers(3).shuffle(3);
  for (std::uint64_t epoch = 0; epoch < 1200; ++epoch) ++times[values_of(shuffled, 0, epoch)];
  EXPECT_EQ(times.size(), 6U);
  for (const auto& [order, count] : times) EXPECT_NEAR(count, 200, 65);  // five standard deviations
}

TEST(Shuffle, BehindAMapIsDoneBeforeItAndChangesNoRow) {
  const auto mapped = photographs(40).map({random_horizontal_flip(), resize({8, 8})}, {"image"});
  std::multiset<std::vector<std::uint8_t>> plain, shuffled;
  const auto gather = [](const Dataset& dataset, auto& images) {
    for (const Item& item : items_of(dataset))
      images.emplace(item[0].data<std::uint8_t>(), item[0].data<std::uint8_t>() + item[0].elements());
  };
  gather(mapped, plain);
  gather(mapped.shuffle(10).batch(1), shuffled);
  EXPECT_EQ(mapped.shuffle(10).columns()[0].shape, (Shape{8, 8, 3}));
  // The operations' numbers count on from the shuffle's, so flips differ, but each row is one of two.
  EXPECT_EQ(plain.size(), shuffled.size());
  EXPECT_THAT(error_of(numbers(3).shuffle(1)), Mentions("buffer", "is 1", "be 2"));
}

TEST(Zip, PutsColumnsSideBySideAsLongAsAllHaveRows) {
  const auto zipped = Dataset::zip({numbers(5), numbers(9, "other").skip(2)});
  EXPECT_EQ(zipped.size().value(), 5);
  EXPECT_THAT(values_of(zipped), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(values_of(zipped, 1), ElementsAre(2, 3, 4, 5, 6));
  EXPECT_THAT(values_of(zipped.batch(2), 1), ElementsAre(2, 3, 4, 5, 6));
  EXPECT_EQ(zipped.columns()[1].name, "other");
  EXPECT_THAT(error_of(Dataset::zip({numbers(5), numbers(5)})), Mentions("datasets", "'number'"));
  EXPECT_THAT(error_of(Dataset::zip({numbers(5)})), HasSubstr("at least two"));
}

TEST(Concat, YieldsOneDatasetAfterTheOther) {
  const auto both = Dataset::concat({numbers(3), numbers(2)});
  EXPECT_EQ(both.size().value(), 5);
  EXPECT_THAT(values_of(both), ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(values_of(both.batch(4)), ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(error_of(Dataset::concat({numbers(3), numbers(2, "other")})), HasSubstr("different columns"));
}

TEST(Concat, GivesTheSameRowTwiceOtherRandomNumbers) {
  const auto twice =
      Dataset::concat({photographs(60), photographs(60)}).map({random_horizontal_flip()}, {"image"});
  const auto items = items_of(twice);
  int equal = 0;
  for (std::size_t row = 0; row < 60; ++row)
    equal += std::memcmp(items[row][0].bytes(), items[row + 60][0].bytes(), 3072) == 0;
  EXPECT_NEAR(equal, 30, 20);
}

TEST(Filter, KeepsTheRowsForWhichItIsTrue) {
  const auto even = numbers(7).filter(std::make_shared<Even>());
  EXPECT_THAT(values_of(even), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(values_of(even.batch(3)), ElementsAre(0, 2, 4, 6));
  EXPECT_EQ(even.size().value(), size_unknown);
  EXPECT_EQ(even.batch(3).size().value(), size_unknown);
  EXPECT_EQ(even.batch(3).count_items().value(), 2);
  EXPECT_EQ(numbers(7).count_items().value(), 7);
}

TEST(Columns, AreChosenAndRenamed) {
  const auto zipped = Dataset::zip({numbers(3), numbers(3, "other").skip(1)});
  const auto chosen = zipped.project({"other", "number"}).rename({"other"}, {"next"});
  EXPECT_EQ(chosen.columns()[0].name, "next");
  EXPECT_THAT(values_of(chosen), ElementsAre(1, 2));
  EXPECT_THAT(error_of(zipped.project({"none"})), Mentions("project", "column", "'none'"));
  EXPECT_THAT(error_of(zipped.rename({"other"}, {"number"})), Mentions("columns", "'number'"));
}

class Halves final : public Operation {  // two values of one
 public:
  std::string name() const override { return "halves"; }
  Result<std::vector<Tensor>> apply(std::span<const Tensor> values, Draw) const override {
    const auto value = *values[0].data<std::int32_t>();
    return std::vector{Tensor::scalar<std::int32_t>(value / 2), Tensor::scalar<std::int32_t>(value % 2)};
  }
};

TEST(Map, MayMakeMoreColumnsThanItTakes) {
  const auto zipped = Dataset::zip({numbers(4), numbers(4, "other")});
  const auto mapped = zipped.map({std::make_shared<Halves>()},
                                 MapOptions{.input_columns = {"other"}, .output_columns = {"half", "rest"}});
  ASSERT_EQ(mapped.columns().size(), 3U);
  EXPECT_EQ(mapped.columns()[0].name, "half");
  EXPECT_EQ(mapped.columns()[2].name, "number");
  EXPECT_THAT(values_of(mapped, 0), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(values_of(mapped, 1), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(values_of(mapped, 2), ElementsAre(0, 1, 2, 3));
  const auto named = numbers(2).map({type_cast(DType::int32)}, MapOptions{.output_columns = {"cast"}});
  EXPECT_EQ(named.columns()[0].name, "cast");
  auto iterator = zipped.map({std::make_shared<Halves>()}, {"other"}).iterate({}).value();
  EXPECT_THAT(iterator.next().error().message, HasSubstr("gave 2 values for 1 columns"));
}

TEST(Slices, CheckTheirArrays) {
  EXPECT_THAT(error_of(slices({"a"}, {Tensor::scalar<float>(1)})), Mentions("counts", "rows"));
  EXPECT_THAT(
      error_of(slices({"a", "b"}, {Tensor::zeros(DType::float32, {2}), Tensor::zeros(DType::float32, {3})})),
      Mentions("column", "'a'", "2 rows", "'b'", "has 3"));
  EXPECT_THAT(error_of(slices({"a", "a"}, {})), Mentions("columns", "'a'"));
}

class Squares final : public RowSource {
 public:
  std::int64_t rows() const override { return 5; }
  Result<std::vector<Tensor>> row(std::int64_t index) const override {
    return std::vector{Tensor::scalar<std::int32_t>(static_cast<std::int32_t>(index * index))};
  }
};

TEST(Generated, AsksForTheRowsThatTheOrderNames) {
  const auto source = std::make_shared<Squares>();
  EXPECT_THAT(values_of(generated({"square"}, source, {.shuffle = false})), ElementsAre(0, 1, 4, 9, 16));
  EXPECT_THAT(values_of(generated({"square"}, source, {.sampler = subset_sampler({3, 1})}).batch(2)),
              ElementsAre(9, 1));
  auto iterator = generated({"a", "b"}, source).iterate({}).value();
  EXPECT_THAT(iterator.next().error().message, Mentions("holds", "1 values", "2 columns"));
}

// Counts from 0 to 3; a row per call.
struct Counting final : RowSequence {
  int count = 0;
  Result<std::optional<std::vector<Tensor>>> next() override {
    if (count == 4) return std::nullopt;
    return std::vector{Tensor::scalar<std::int32_t>(count++)};
  }
};

TEST(Generated, BeginsASequenceAnewForEachPass) {
  const BeginRows begin = [](std::uint64_t) -> Result<std::unique_ptr<RowSequence>> {
    return std::make_unique<Counting>();
  };
  const auto dataset = generated({"count"}, begin);
  EXPECT_EQ(dataset.size().value(), size_unknown);
  EXPECT_THAT(values_of(dataset), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values_of(dataset.repeat(2).batch(3)), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(values_of(generated({"count"}, begin, {.num_samples = 2})), ElementsAre(0, 1));
}

TEST(Generated, HoldsASourceOfAScriptToItsSizeUnlessThatVaries) {
  const BeginRows begin = [](std::uint64_t) -> Result<std::unique_ptr<RowSequence>> {
    return std::make_unique<Counting>();
  };
  for (const std::int64_t said : {3, 5}) {
    const auto held = generated({"count"}, begin, {.size = said, .external = "train_dataset"});
    auto iterator = held.iterate({}).value();
    Result<std::optional<Item>> item = iterator.next();
    while (item && *item) item = iterator.next();
    EXPECT_THAT(item.error().message, Mentions("train_dataset", fmt::format("{} items", said)));
    const SequenceOptions varies{.size = said, .external = "train_dataset", .size_varies = true};
    EXPECT_EQ(items_of(generated({"count"}, begin, varies)).size(), 4U);
    EXPECT_EQ(generated({"count"}, begin, varies).size().value(), said);
  }
}

// Images of 1 x 1 to 40 x 40 pixels, each of one colour.
class Squared final : public RowSource {
 public:
  std::int64_t rows() const override { return 40; }
  Result<std::vector<Tensor>> row(std::int64_t index) const override {
    Tensor image(DType::uint8, {index + 1, index + 1, 3});
    std::fill_n(image.data<std::uint8_t>(), image.elements(), static_cast<std::uint8_t>(6 * index));
    return std::vector{image, Tensor::scalar<std::int32_t>(static_cast<std::int32_t>(index))};
  }
};

TEST(Map, TakesRowsOfAnySizeAndLaysThoseThatBecomeAlikeIntoOneBatch) {
  const auto images = generated({"image", "number"}, std::make_shared<Squared>(), {.shuffle = false})
                          .map({resize({16, 16}), rescale(1, 0), hwc2chw()}, {"image"});
  for (const int workers : {1, 3}) {
    auto iterator = images.batch(32).iterate({.workers = workers}).value();
    for (const std::int64_t rows : {32, 8}) {
      const auto batch = iterator.next().value();
      ASSERT_EQ((*batch)[0].shape(), (Shape{rows, 3, 16, 16}));
      for (std::int64_t row = 0; row < rows; ++row)
        ASSERT_EQ((*batch)[0].data<float>()[row * 3 * 256 + 700],
                  6.0f * static_cast<float>((*batch)[1].data<std::int32_t>()[row]));
    }
    EXPECT_FALSE(iterator.next().value().has_value());
  }
  // Without a common size they come one by one, and cannot be batched.
  const auto flipped = generated({"image", "number"}, std::make_shared<Squared>(), {.shuffle = false})
                           .map({random_vertical_flip()}, {"image"});
  EXPECT_EQ(items_of(flipped)[7][0].shape(), (Shape{8, 8, 3}));
  auto batches = flipped.batch(2).iterate({}).value();
  EXPECT_THAT(batches.next().error().message, Mentions("'image'", "batched"));
}

TEST(Map, GivesTheRowsBeforeAnErrorFirst) {
  const auto labels = numbers(5).map({one_hot(3)}, {"number"});
  auto iterator = labels.iterate({}).value();
  for (int row = 0; row < 3; ++row) ASSERT_TRUE(iterator.next().value().has_value());
  EXPECT_THAT(iterator.next().error().message, Mentions("label 3", "3 classes"));
  EXPECT_THAT(labels.batch(2).iterate({}).value().next().value()->front().shape(), (Shape{2, 3}));
}

TEST(Dataset, SaysWhatWasSetUpstream) {
  EXPECT_EQ(numbers(9).batch_size(), 1);
  EXPECT_EQ(numbers(9).batch(4).repeat(3).take(1).batch_size(), 4);
  EXPECT_EQ(numbers(9).batch(4).repeat(3).repeat_count(), 3);
}

TEST(Workers, DoEverythingOnceAndNeverMoreThanTheyMay) {
  Workers workers(4);
  for (const std::size_t count : {0U, 1U, 3U, 1000U})
    for (const int workers_max : {0, 1, 2}) {
      std::vector<std::atomic<int>> done(count);
      std::atomic<int> worker_max = 0;
      workers.for_each(count, workers_max, [&](int worker, std::size_t index) {
        ++done[index];
        for (int seen = worker_max; worker > seen && !worker_max.compare_exchange_weak(seen, worker);)
          continue;
      });
      for (const auto& times : done) ASSERT_EQ(times, 1);
      EXPECT_LT(worker_max, workers_max == 0 ? 4 : workers_max);
    }
}

}  // namespace combine_test
}  // namespace
}  // namespace muster::data
