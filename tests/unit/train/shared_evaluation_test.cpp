#include "muster/train/shared_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "muster/train/metrics.h"
#include "tests/unit/base/mentions.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<EvaluationFacts> shards(std::initializer_list<std::pair<std::int64_t, std::int64_t>> parts) {
  std::vector<EvaluationFacts> ranks;
  for (const auto& [index, count] : parts)
    ranks.push_back({.shard = {.count = count, .index = index}, .metrics = "accuracy"});
  return ranks;
}

TEST(EvaluationShares, CountEachShardOnceAndInItsOrder) {
  EXPECT_THAT(evaluation_shares(shards({{2, 3}, {0, 3}, {1, 3}}))->counted, ElementsAre(1, 2, 0));
  const auto twice = evaluation_shares(shards({{0, 2}, {0, 2}, {1, 2}, {1, 2}}));
  EXPECT_THAT(twice->counted, ElementsAre(0, 2));
  EXPECT_TRUE(twice->is_together);
  EXPECT_THAT(twice->note, IsEmpty());
}

TEST(EvaluationShares, OfWorkersThatReadAllRowsAreNone) {
  const auto whole = evaluation_shares(shards({{0, 1}, {0, 1}}));
  EXPECT_TRUE(whole->is_together);
  EXPECT_THAT(whole->counted, IsEmpty());
}

TEST(EvaluationShares, NameShardsThatNobodyReads) {
  const auto some = evaluation_shares(shards({{0, 4}, {3, 4}}));
  EXPECT_THAT(some->counted, ElementsAre(0, 1));
  EXPECT_THAT(some->note, Mentions("2 of 4 shards", "1, 2"));
}

TEST(EvaluationShares, AreNotTogetherWhereAWorkerEvaluatesNothing) {
  auto ranks = shards({{0, 2}, {1, 2}});
  ranks[1].evaluates = false;
  const auto shares = evaluation_shares(ranks);
  EXPECT_FALSE(shares->is_together);
  EXPECT_THAT(shares->note, Mentions("worker 1", "valid_dataset"));
}

TEST(EvaluationShares, RefuseRanksThatEvaluateOtherwise) {
  EXPECT_THAT(evaluation_shares(shards({{0, 2}, {0, 1}})).error().message, Mentions("rank 0", "2", "rank 1"));
  auto metrics = shards({{0, 2}, {1, 2}});
  metrics[1].metrics = "loss";
  EXPECT_THAT(evaluation_shares(metrics).error().message, Mentions("accuracy", "rank 1", "loss"));
  auto frequency = shards({{0, 2}, {1, 2}});
  frequency[1].epochs = "every 3 epochs";
  EXPECT_THAT(evaluation_shares(frequency).error().message, HasSubstr("valid_frequency"));
  auto mixed = shards({{0, 2}, {1, 2}});
  mixed[1].shard.is_mixed = true;
  EXPECT_THAT(evaluation_shares(mixed).error().message, Mentions("rank 1", "more than once"));
}

Tensor column(std::vector<float> values) {
  const Shape shape{static_cast<std::int64_t>(values.size()), 1};
  return Tensor::from<float>(std::span<const float>(values), shape);
}

TEST(MergeCounts, GivesWhatOneWorkerCountsOfAllRows) {
  const auto make = [] {
    return NamedMetrics{{"mae", metric_named("mae").value()}, {"f", metric_named("mse").value()}};
  };
  const auto update = [](const NamedMetrics& metrics, std::vector<float> a, std::vector<float> b) {
    const std::vector<Tensor> batch{column(std::move(a)), column(std::move(b))};
    for (const auto& metric : metrics) ASSERT_TRUE(metric.second->update(batch));
  };
  const NamedMetrics one = make(), first = make(), second = make();
  update(one, {0.1F, 2.7F, 1e8F}, {0.3F, -1.1F, 3.3F});
  update(first, {0.1F, 1e8F}, {0.3F, 3.3F});
  update(second, {2.7F}, {-1.1F});
  const std::vector<MetricCounts> counts{counts_of(first).value(), counts_of(second).value()};
  for (const NamedMetrics& worker : {first, second}) {
    ASSERT_TRUE(merge_counts(worker, counts));
    for (std::size_t i = 0; i < one.size(); ++i)
      EXPECT_EQ(std::get<double>(worker[i].second->eval().value()),
                std::get<double>(one[i].second->eval().value()));
  }
}

TEST(MergeCounts, TakesWorkersThatHaveCountedNothing) {
  const NamedMetrics metrics{{"precision", metric_named("precision").value()}};
  const std::vector<Tensor> batch{Tensor::from<float>(std::vector<float>{0.1F, 0.9F}, {1, 2}),
                                  column({1}).reshaped({1})};
  const MetricCounts nothing = counts_of(metrics).value();
  ASSERT_TRUE(metrics[0].second->update(batch));
  const MetricCounts one_row = counts_of(metrics).value();
  ASSERT_TRUE(merge_counts(metrics, std::vector{nothing, one_row, nothing}));
  const Tensor values = std::get<Tensor>(metrics[0].second->eval().value());
  EXPECT_THAT(std::vector(values.span<double>().begin(), values.span<double>().end()), ElementsAre(0, 1));
}

TEST(MergeCounts, RefusesWhatIsCutOff) {
  const NamedMetrics metrics{{"mae", metric_named("mae").value()}};
  MetricCounts counts = counts_of(metrics).value();
  for (const std::size_t size : {counts.size() - 1, std::size_t{12}, std::size_t{3}}) {
    counts.resize(size);
    EXPECT_FALSE(merge_counts(metrics, std::span(&counts, 1)));
  }
}

TEST(ExactSum, DependsOnNoOrder) {
  std::mt19937_64 random(7);
  std::vector<double> numbers;
  for (int i = 0; i < 500; ++i)
    numbers.push_back(std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 120) - 90) *
                      (random() % 2 == 0 ? 1 : -1));
  ExactSum sum;
  sum.add(numbers);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(numbers.begin(), numbers.end(), random);
    ExactSum first, second;
    first.add(std::span(numbers).first(200));
    second.add(std::span(numbers).subspan(200));
    second.add(first.parts());
    EXPECT_EQ(second.value(), sum.value());
  }
}

TEST(ExactSum, RoundsOnce) {
  ExactSum tenths;
  for (int i = 0; i < 10; ++i) tenths.add(0.1);
  EXPECT_EQ(tenths.value(), 1.0);
  ExactSum far;
  for (const double number : {1e100, 1.0, -1e100}) far.add(number);
  EXPECT_EQ(far.value(), 1.0);
  // Half a unit above 1, and a little more or less below that.
  const double half = std::ldexp(1.0, -53), less = std::ldexp(1.0, -110);
  for (const auto& [little, expected] :
       {std::pair{less, std::nextafter(1.0, 2.0)}, std::pair{-less, 1.0}, std::pair{0.0, 1.0}}) {
    ExactSum sum;
    for (const double number : {1.0, half, little}) sum.add(number);
    EXPECT_EQ(sum.value(), expected);
  }
}

TEST(ExactSum, KeepsWhatIsNoNumber) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  ExactSum sum;
  sum.add(1.0);
  sum.add(infinity);
  EXPECT_EQ(sum.value(), infinity);
  ExactSum copy;
  copy.add(sum.parts());
  EXPECT_EQ(copy.value(), infinity);
  copy.add(-infinity);
  EXPECT_TRUE(std::isnan(copy.value()));
}

TEST(Loss, CountsBatchesByTheirRows) {
  Loss loss;
  const auto update = [&loss](float value, std::int64_t rows) {
    loss.set_rows(rows);
    ASSERT_TRUE(loss.update(std::vector<Tensor>{Tensor::from<float>(std::vector<float>{value}, Shape{})}));
  };
  update(1.0F, 30);
  update(4.0F, 10);
  EXPECT_DOUBLE_EQ(std::get<double>(loss.eval().value()), 1.75);
}

}  // namespace
}  // namespace muster::train
