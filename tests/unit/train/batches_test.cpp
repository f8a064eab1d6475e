#include "muster/train/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "muster/train/pipeline_group.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/collective/ranks.h"
#include "tests/unit/train/bars.h"

namespace muster::train {
namespace {

using collective::Hosts;
using testing::bars;
using testing::batches;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::uint32_t ranks = 3;
constexpr std::uint32_t reader = 1;

// What each of three workers does with the dataset that it makes by itself.
void on_workers(const std::function<void(std::uint32_t, Communicator&)>& work) {
  const auto communicators = collective::connect_ranks(ranks, Hosts::one);
  collective::run_threads(ranks, [&](std::uint32_t rank) {
    PipelineGroup stages(rank, {.first = 0, .size = ranks},
                         [group = communicators[rank].get()] { return group; });
    work(rank, stages);
  });
}

TEST(Batches, OneWorkerReadsAndTheOthersLearnTheTypes) {
  on_workers([](std::uint32_t rank, Communicator& stages) {
    const data::Dataset dataset = batches(25, 10);
    std::uint64_t passes = 0;
    Batches shared(dataset, passes);
    shared.divide(stages, reader);
    for (int pass = 1; pass <= 2; ++pass) {
      for (const std::int64_t rows : {10, 10, 5}) {
        const auto item = shared.next().value();
        ASSERT_TRUE(item);
        ASSERT_THAT(*item, SizeIs(2));
        EXPECT_EQ((*item)[0].shape(), (Shape{rows, 28, 28, 1}));
        EXPECT_EQ((*item)[1].dtype(), DType::int32);
        for (const Tensor& column : *item) EXPECT_EQ(column.absence() == nullptr, rank == reader);
      }
      EXPECT_FALSE(shared.next().value());
      EXPECT_EQ(passes, pass);
    }
  });
}

// Notes how many rows it saw.
class Counting : public data::Operation {
 public:
  std::string name() const override { return "Counting"; }
  Result<std::vector<Tensor>> apply(std::span<const Tensor> values, data::Draw) const override {
    ++rows;
    return std::vector<Tensor>(values.begin(), values.end());
  }
  mutable std::atomic<int> rows = 0;
};

TEST(Batches, TheOthersDecodeNothing) {
  on_workers([](std::uint32_t rank, Communicator& stages) {
    const auto counting = std::make_shared<Counting>();
    const data::Dataset dataset =
        data::mnist({.folder = "/bars"}, bars(20)).map({counting}, {"image"}).batch(10);
    std::uint64_t passes = 0;
    Batches shared(dataset, passes);
    shared.divide(stages, reader);
    EXPECT_EQ(shared.count("training").value(), 2);
    while (shared.next().value()) {
    }
    EXPECT_EQ(counting->rows, rank == reader ? 20 : 0);
  });
}

TEST(Batches, AnErrorOfTheReaderIsTheErrorOfAll) {
  on_workers([](std::uint32_t, Communicator& stages) {
    const data::Dataset none = batches(5, 10, true);
    std::uint64_t passes = 0;
    Batches shared(none, passes);
    shared.divide(stages, reader);
    const auto counted = shared.count("training");
    ASSERT_FALSE(counted);
    EXPECT_THAT(counted.error().message, Mentions("training", "dataset"));
  });
}

TEST(Batches, TheReaderCountsForAll) {
  on_workers([](std::uint32_t rank, Communicator& stages) {
    const data::Dataset dataset = batches(rank == reader ? 40 : 10, 10);
    std::uint64_t passes = 0;
    Batches shared(dataset, passes);
    shared.divide(stages, reader);
    EXPECT_EQ(shared.count("training").value(), 4);
  });
}

TEST(Batches, AReaderThatIsChosenLaterBeginsTheSamePass) {
  on_workers([](std::uint32_t rank, Communicator& stages) {
    const data::Dataset dataset = batches(20, 10);
    std::uint64_t passes = 4;
    Batches shared(dataset, passes);
    shared.divide(stages, 0);
    EXPECT_EQ(shared.peek().value()[0].absence() == nullptr, rank == 0);
    shared.pass_on(reader);
    for (int i = 0; i < 2; ++i) EXPECT_EQ((*shared.next().value())[0].absence() == nullptr, rank == reader);
    EXPECT_FALSE(shared.next().value());
    EXPECT_EQ(passes, 5U);
  });
}

TEST(Batches, WhatWasSeenAheadComesNext) {
  const data::Dataset dataset = batches(20, 10);
  std::uint64_t passes = 0;
  Batches alone(dataset, passes);
  const data::Item first = alone.peek().value();
  EXPECT_EQ((*alone.next().value())[0].buffer(), first[0].buffer());
  EXPECT_TRUE(alone.next().value());
  EXPECT_FALSE(alone.next().value());
}

// Labels of the first sample of each item, from the position on to the end of pass `last`.
std::vector<std::int32_t> labels_until(Batches& items, std::uint64_t last) {
  std::vector<std::int32_t> labels;
  while (items.position().pass <= last)
    if (const auto item = items.next().value()) labels.push_back((*item)[1].span<std::int32_t>()[0]);
  return labels;
}

TEST(Batches, BeginInTheMiddleOfAPass) {
  const data::Dataset dataset =
      data::mnist({.folder = "/bars"}, bars(60)).map({data::type_cast(DType::int32)}, {"label"}).batch(4);
  std::uint64_t passes = 0, later_passes = 0;
  Batches whole(dataset, passes);
  for (int i = 0; i < 15 + 1 + 6; ++i) (void)whole.next().value();  // a pass, its end, and a part of the next
  EXPECT_EQ(whole.position().pass, 1U);
  EXPECT_EQ(whole.position().items, 6U);
  Batches later(dataset, later_passes);
  later.begin_at(whole.position());
  EXPECT_EQ(labels_until(later, 2), labels_until(whole, 2));
}

TEST(Batches, KeepTheirPositionBetweenPassesAndWhileAnItemIsPeekedAt) {
  const data::Dataset dataset = batches(20, 10);
  std::uint64_t passes = 4;
  Batches items(dataset, passes);
  EXPECT_EQ(items.position().pass, 4U);
  ASSERT_TRUE(items.peek());
  EXPECT_EQ(items.position().pass, 4U);
  EXPECT_EQ(items.position().items, 0U);
  for (int i = 0; i < 3; ++i) (void)items.next().value();
  EXPECT_EQ(items.position().pass, 5U);
  EXPECT_EQ(items.position().items, 0U);
}

TEST(Batches, BeginInTheMiddleWhoeverReads) {
  on_workers([](std::uint32_t rank, Communicator& stages) {
    const data::Dataset dataset = data::mnist({.folder = "/bars", .shuffle = false}, bars(50))
                                      .map({data::type_cast(DType::int32)}, {"label"})
                                      .batch(9);
    std::uint64_t passes = 0;
    Batches shared(dataset, passes);
    shared.divide(stages, reader);
    shared.begin_at({.pass = 3, .items = 2});
    ASSERT_TRUE(shared.peek());
    shared.pass_on(2);
    for (std::int32_t item = 2; item < 6; ++item) {
      const auto given = shared.next().value();
      ASSERT_TRUE(given);
      if (rank != 2) continue;
      EXPECT_EQ((*given)[1].span<std::int32_t>()[0], 9 * item % 10);
    }
    EXPECT_FALSE(shared.next().value());
    EXPECT_EQ(passes, 4U);
  });
}

}  // namespace
}  // namespace muster::train
