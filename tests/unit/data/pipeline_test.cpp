#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "digits.h"
#include "muster/data/data.h"
#include "tests/unit/base/mentions.h"

namespace muster::data {
namespace {
namespace pipeline_test {

using namespace muster::data::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An operation that is not built in, as a Python function would be.
class Custom final : public Operation {
 public:
  using Function = std::function<Result<std::vector<Tensor>>(std::span<const Tensor>)>;
  explicit Custom(Function function) : function_(std::move(function)) {}
  std::string name() const override { return "custom"; }
  Result<std::vector<Tensor>> apply(std::span<const Tensor> values, Draw) const override {
    return function_(values);
  }

 private:
  Function function_;
};

OperationPtr custom(Custom::Function function) { return std::make_shared<Custom>(std::move(function)); }

std::string error_of(const Dataset& dataset) {
  const auto status = dataset.status();
  return status ? "no error" : status.error().message;
}

class Pipeline : public ::testing::Test {
 protected:
  Dataset digits(std::uint32_t rows) {
    return mnist({.folder = "/digits", .shuffle = false}, digits_folder(rows));
  }
};

TEST_F(Pipeline, MakesTheBatchesOfTheFirstExample) {
  const auto dataset =
      digits(70)
          .map({rescale(1.0f / 255.0f, 0), normalize({.mean = {0.1307f}, .std = {0.3081f}}), hwc2chw()},
               {"image"})
          .map({type_cast(DType::int32)}, {"label"})
          .batch(32);
  EXPECT_EQ(dataset.size().value(), 3);
  EXPECT_EQ(dataset.columns()[0].dtype, DType::float32);
  EXPECT_EQ(dataset.columns()[0].shape, (Shape{-1, 1, 28, 28}));
  const auto items = items_of(dataset);
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(items[0][0].shape(), (Shape{32, 1, 28, 28}));
  EXPECT_EQ(items[2][0].shape(), (Shape{6, 1, 28, 28}));
  EXPECT_EQ(items[2][1].shape(), (Shape{6}));
  for (std::uint32_t row = 0; row < 70; ++row) {
    const Item& batch = items[row / 32];
    EXPECT_EQ(batch[1].data<std::int32_t>()[row % 32], static_cast<std::int32_t>(row % 10));
    const float* image = batch[0].data<float>() + row % 32 * 784;
    for (std::size_t pixel = 0; pixel < 784; ++pixel) {
      const float scaled = static_cast<float>(pixel_of(row, pixel)) * (1.0f / 255.0f) + 0.0f;
      ASSERT_EQ(image[pixel], (scaled - 0.1307f) / 0.3081f) << row << " " << pixel;
    }
  }
}

TEST_F(Pipeline, DropsTheSmallerLastBatchWhenAsked) {
  const auto dataset = digits(70).batch(32, true);
  EXPECT_EQ(dataset.size().value(), 2);
  EXPECT_EQ(dataset.columns()[0].shape, (Shape{32, 28, 28, 1}));
  EXPECT_EQ(items_of(dataset).size(), 2U);
}

TEST_F(Pipeline, BatchesAcrossRepetitions) {
  const auto items = items_of(digits(3).repeat(2).batch(4));
  ASSERT_EQ(items.size(), 2U);
  EXPECT_THAT(std::vector(items[0][1].data<std::uint32_t>(), items[0][1].data<std::uint32_t>() + 4),
              ElementsAre(0, 1, 2, 0));
  EXPECT_EQ(items[0][0].data<std::uint8_t>()[3 * 784], pixel_of(0, 0));
  EXPECT_EQ(items[1][1].elements(), 2);
}

TEST_F(Pipeline, ShufflesEachRepetitionAnewAndCountsOnFromPassToPass) {
  const auto one = mnist({.folder = "/digits"}, digits_folder(50));
  const auto thrice = one.repeat(3);
  EXPECT_EQ(thrice.size().value(), 150);
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    const auto rows = rows_of(items_of(thrice, 1, epoch));
    for (std::uint64_t repetition = 0; repetition < 3; ++repetition) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(50 * repetition);
      const std::vector order(begin, begin + 50);
      EXPECT_EQ(order, rows_of(items_of(one, 1, 3 * epoch + repetition)));
      orders.insert(order);
    }
  }
  EXPECT_EQ(orders.size(), 6U);
}

TEST_F(Pipeline, RepeatsWithoutEndWhenAsked) {
  const auto dataset = digits(3).repeat();
  EXPECT_EQ(dataset.size().value(), -1);
  EXPECT_EQ(dataset.take(10).size().value(), 10);
  EXPECT_THAT(rows_of(items_of(dataset.take(7))), ElementsAre(0, 1, 2, 0, 1, 2, 0));
}

TEST_F(Pipeline, EndsWhenThereIsNothingToRepeat) {
  EXPECT_TRUE(items_of(digits(3).batch(4, true).repeat()).empty());
}

TEST_F(Pipeline, TakesAndSkips) {
  EXPECT_THAT(rows_of(items_of(digits(5).take(2))), ElementsAre(0, 1));
  EXPECT_THAT(rows_of(items_of(digits(5).skip(3))), ElementsAre(3, 4));
  EXPECT_THAT(rows_of(items_of(digits(5).skip(9))), ElementsAre());
  EXPECT_EQ(digits(5).skip(3).size().value(), 2);
  EXPECT_EQ(digits(5).skip(9).size().value(), 0);
  EXPECT_EQ(digits(5).take(9).size().value(), 5);
  EXPECT_EQ(digits(5).batch(2).skip(1).take(1).size().value(), 1);
}

TEST_F(Pipeline, YieldsTheSameForTheSameSeedAndEpochHoweverOftenItIsRun) {
  const auto dataset = mnist({.folder = "/digits"}, digits_folder(100)).batch(7);
  const auto bytes = [&](std::uint64_t seed, std::uint64_t epoch) {
    std::vector<std::byte> all;
    for (const Item& item : items_of(dataset, seed, epoch))
      all.insert(all.end(), item[0].bytes(), item[0].bytes() + item[0].size_bytes());
    return all;
  };
  EXPECT_EQ(bytes(7, 3), bytes(7, 3));
  EXPECT_NE(bytes(7, 3), bytes(7, 4));
  EXPECT_NE(bytes(7, 3), bytes(8, 3));
}

TEST_F(Pipeline, MapsBatchesToo) {
  const auto items = items_of(digits(5).batch(3).map({rescale(2, 1)}, {"label"}));
  EXPECT_EQ(items[1][1].shape(), (Shape{2}));
  EXPECT_THAT(std::vector(items[1][1].data<float>(), items[1][1].data<float>() + 2), ElementsAre(7, 9));
}

TEST_F(Pipeline, MapsTheFirstColumnWhenNoneIsNamed) {
  EXPECT_EQ(digits(1).map({type_cast(DType::float64)}).columns()[0].dtype, DType::float64);
}

TEST_F(Pipeline, LeavesADatasetAsItWasWhenAnotherIsMadeFromIt) {
  const auto rows = digits(4);
  const auto batches = rows.batch(2);
  EXPECT_EQ(rows.size().value(), 4);
  EXPECT_EQ(batches.size().value(), 2);
  EXPECT_EQ(items_of(rows).size(), 4U);
}

TEST_F(Pipeline, RunsOperationsOfOthersOnTheColumnsTheyAskFor) {
  const auto swap_halves = custom([](std::span<const Tensor> values) -> Result<std::vector<Tensor>> {
    const auto label = *values[1].data<std::uint32_t>();
    return std::vector{Tensor::scalar<float>(static_cast<float>(label) / 2),
                       Tensor::scalar<std::int64_t>(-1)};
  });
  const auto dataset = digits(5).map({swap_halves}, {"image", "label"}).batch(3);
  EXPECT_FALSE(dataset.columns()[0].dtype.has_value());
  const auto items = items_of(dataset);
  ASSERT_EQ(items.size(), 2U);
  EXPECT_THAT(std::vector(items[0][0].data<float>(), items[0][0].data<float>() + 3), ElementsAre(0, 0.5f, 1));
  EXPECT_EQ(items[1][1].shape(), (Shape{2}));
  EXPECT_EQ(items[1][1].dtype(), DType::int64);
}

TEST_F(Pipeline, MixesBuiltInOperationsAndThoseOfOthers) {
  const auto negate = custom([](std::span<const Tensor> values) -> Result<std::vector<Tensor>> {
    Tensor made = values[0].clone();
    for (float& value : made.span<float>()) value = -value;
    return std::vector{made};
  });
  const auto items =
      items_of(digits(2).map({type_cast(DType::float32), negate, rescale(1, 10)}, {"label"}).batch(2));
  EXPECT_THAT(std::vector(items[0][1].data<float>(), items[0][1].data<float>() + 2), ElementsAre(10, 9));
}

TEST_F(Pipeline, ReportsMistakesOfADescriptionAtOnceAndKeepsTheFirst) {
  EXPECT_THAT(error_of(digits(2).map({hwc2chw()}, {"picture"})),
              Mentions("'picture'", "columns", "'image', 'label'"));
  EXPECT_THAT(error_of(digits(2).map({hwc2chw()}, {"label"})), Mentions("'label'", "HWC2CHW", "image"));
  EXPECT_THAT(error_of(digits(2).map({hwc2chw()}, {"image", "label"})), HasSubstr("takes one column, not 2"));
  EXPECT_THAT(error_of(digits(2).map({hwc2chw()}, {"image", "image"})), HasSubstr("named twice"));
  EXPECT_THAT(error_of(digits(2).map({}, {"image"})), HasSubstr("no operation"));
  EXPECT_THAT(error_of(digits(2).map({nullptr}, {"image"})), HasSubstr("empty"));
  EXPECT_THAT(error_of(digits(2).batch(0)), HasSubstr("batch size is 0"));
  EXPECT_THAT(error_of(digits(2).repeat(0)), HasSubstr("repeat count is 0"));
  EXPECT_THAT(error_of(digits(2).take(0)), HasSubstr("take count is 0"));
  EXPECT_THAT(error_of(digits(2).skip(-1)), HasSubstr("skip count is -1"));
  const auto broken = digits(2).batch(0).repeat(0);
  EXPECT_THAT(error_of(broken), HasSubstr("batch size is 0"));
  EXPECT_EQ(broken.size().error().message, error_of(broken));
  EXPECT_EQ(broken.iterate({}).error().message, error_of(broken));
}

TEST_F(Pipeline, ReportsRowsThatDoNotFitIntoOneBatch) {
  const auto growing = custom([](std::span<const Tensor> values) -> Result<std::vector<Tensor>> {
    return std::vector{
        Tensor::zeros(DType::float32, {static_cast<std::int64_t>(*values[0].data<std::uint32_t>())})};
  });
  const auto dataset = digits(3).map({growing}, {"label"});
  EXPECT_EQ(items_of(dataset)[2][1].shape(), (Shape{2}));
  auto iterator = dataset.batch(2).iterate({}).value();
  EXPECT_THAT(iterator.next().error().message, Mentions("float32 (0,)", "float32 (1,)"));
  auto batches = digits(3).batch(2).batch(2).iterate({}).value();
  EXPECT_THAT(batches.next().error().message, Mentions("'image'", "batched"));
}

}  // namespace pipeline_test
}  // namespace
}  // namespace muster::data
