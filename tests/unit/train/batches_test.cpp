#include "muster/train/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "muster/train/stages.h"
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
void on_workers(const std::function<void(std::uint32_t, graph::Communicator&)>& work) {
  const auto communicators = collective::connect_ranks(ranks, Hosts::one);
  collective::run_threads(ranks, [&](std::uint32_t rank) {
    Stages stages(rank, {.first = 0, .size = ranks}, [group = communicators[rank].get()] { return group; });
    work(rank, stages);
  });
}

TEST(Batches, OneWorkerReadsAndTheOthersLearnTheTypes) {
  on_workers([](std::uint32_t rank, graph::Communicator& stages) {
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
  on_workers([](std::uint32_t rank, graph::Communicator& stages) {
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
  on_workers([](std::uint32_t, graph::Communicator& stages) {
    const data::Dataset none = batches(5, 10, true);
    std::uint64_t passes = 0;
    Batches shared(none, passes);
    shared.divide(stages, reader);
    const auto counted = shared.count("training");
    ASSERT_FALSE(counted);
    EXPECT_THAT(counted.error().message, HasSubstr("the training dataset has no items"));
  });
}

TEST(Batches, TheReaderCountsForAll) {
  on_workers([](std::uint32_t rank, graph::Communicator& stages) {
    const data::Dataset dataset = batches(rank == reader ? 40 : 10, 10);
    std::uint64_t passes = 0;
    Batches shared(dataset, passes);
    shared.divide(stages, reader);
    EXPECT_EQ(shared.count("training").value(), 4);
  });
}

TEST(Batches, AReaderThatIsChosenLaterBeginsTheSamePass) {
  on_workers([](std::uint32_t rank, graph::Communicator& stages) {
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

}  // namespace
}  // namespace muster::train
