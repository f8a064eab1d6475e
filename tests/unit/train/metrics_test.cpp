// Figures of the same calls in MindSpore 2.7.0 are in tests/python/test_metrics.py; these are checked by
// hand.
#include "muster/train/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/unit/base/mentions.h"

namespace muster::train {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor table(std::vector<float> values, Shape shape) {
  return Tensor::from<float>(std::span<const float>(values), std::move(shape));
}
Tensor labels(std::vector<std::int32_t> values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return Tensor::from<std::int32_t>(std::span<const std::int32_t>(values), shape);
}

const Tensor scores = table({0.2F, 0.5F, 0.3F, 0.3F, 0.1F, 0.6F, 0.9F, 0.6F, 0.3F}, {3, 3});

double number(Metric& metric, const std::vector<std::array<Tensor, 2>>& batches) {
  for (const auto& batch : batches) MUSTER_CHECK(metric.update(batch).has_value(), "the batch is good");
  return std::get<double>(metric.eval().value());
}

std::vector<double> array(Metric& metric, const std::array<Tensor, 2>& batch) {
  MUSTER_CHECK(metric.update(batch).has_value(), "the batch is good");
  const Tensor values = std::get<Tensor>(metric.eval().value());
  return {values.span<double>().begin(), values.span<double>().end()};
}

TEST(Accuracy, CountsRowsOverBatches) {
  Accuracy accuracy;
  EXPECT_DOUBLE_EQ(number(accuracy, {{scores, labels({1, 2, 2})}, {scores, labels({0, 0, 0})}}), 0.5);
  ASSERT_TRUE(accuracy.clear());
  EXPECT_THAT(accuracy.eval().error().message, HasSubstr("nothing has been counted"));
}

TEST(Accuracy, TakesOneHotLabels) {
  Accuracy accuracy;
  EXPECT_DOUBLE_EQ(number(accuracy, {{scores, table({0, 1, 0, 0, 0, 1, 0, 0, 1}, {3, 3})}}), 2.0 / 3);
}

TEST(Accuracy, OfSeveralLabelsWantsAllOfARow) {
  Accuracy accuracy(EvalType::multilabel);
  EXPECT_DOUBLE_EQ(number(accuracy, {{table({0, 1, 1, 0}, {2, 2}), table({0, 1, 1, 1}, {2, 2})}}), 0.5);
}

TEST(Accuracy, NamesShapesAndLabelsThatDoNotFit) {
  Accuracy accuracy;
  EXPECT_THAT(accuracy.update(std::array{scores, labels({0, 3, 0})}).error().message,
              Mentions("Accuracy.update", "label 3", "class", "3 predictions"));
  EXPECT_THAT(accuracy.update(std::array{scores, labels({0})}).error().message, HasSubstr("as many rows"));
}

TEST(TopK, CountsLabelsAmongTheGreatest) {
  TopKCategoricalAccuracy top2(2);
  EXPECT_DOUBLE_EQ(number(top2, {{scores, labels({2, 1, 2})}}), 1.0 / 3);
  Top1CategoricalAccuracy top1;
  EXPECT_DOUBLE_EQ(number(top1, {{scores, labels({1, 2, 2})}}), 2.0 / 3);
}

TEST(Precision, RecallAndF1AreOfEachClass) {
  const std::array batch{scores, labels({1, 0, 0})};  // predicted 1, 2, 0
  Precision precision;
  EXPECT_THAT(array(precision, batch), ElementsAre(1.0, 1.0, 0.0));
  Recall recall;
  EXPECT_THAT(array(recall, batch), ElementsAre(0.5, 1.0, 0.0));
  F1 f1;
  EXPECT_THAT(array(f1, batch), ElementsAre(DoubleNear(2.0 / 3, 1e-12), 1.0, 0.0));
  EXPECT_NEAR(std::get<double>(f1.ClassCounts::eval(true).value()), 5.0 / 9, 1e-12);
}

TEST(Errors, AreDividedByTheRows) {
  const Tensor predictions = table({1, 2, 3, 4}, {2, 2});
  const Tensor wanted = table({1, 4, 3, 1}, {2, 2});
  MAE mae;
  EXPECT_DOUBLE_EQ(number(mae, {{predictions, wanted}}), 2.5);
  MSE mse;
  EXPECT_DOUBLE_EQ(number(mse, {{predictions, wanted}}), 6.5);
}

TEST(Loss, IsTheMeanOfTheBatches) {
  Loss loss;
  for (const float value : {1.0F, 2.0F, 6.0F}) ASSERT_TRUE(loss.update(std::array{Tensor::scalar(value)}));
  EXPECT_DOUBLE_EQ(std::get<double>(loss.eval().value()), 3.0);
}

TEST(ConfusionMatrix, CountsByLabelAndPrediction) {
  ConfusionMatrix matrix({.num_classes = 3});
  EXPECT_THAT(array(matrix, {scores, labels({1, 0, 0})}), ElementsAre(1, 0, 1, 0, 1, 0, 0, 0, 0));
  ConfusionMatrix shares({.num_classes = 3, .normalize = ConfusionMatrixOptions::Normalize::target});
  EXPECT_THAT(array(shares, {scores, labels({1, 0, 0})}), ElementsAre(0.5, 0, 0.5, 0, 1, 0, 0, 0, 0));
}

TEST(ConfusionMatrix, TakesNumbersAboveTheThresholdAsTheSecondClass) {
  const std::array batch{table({0.25F, 0.5F, 0.75F, 1.0F}, {4}), labels({0, 0, 1, 1})};
  ConfusionMatrix usual({.num_classes = 2});
  EXPECT_THAT(array(usual, batch), ElementsAre(2, 0, 0, 2)) << "0.5 itself is not above it";
  ConfusionMatrix strict({.num_classes = 2, .threshold = 0.8});
  EXPECT_THAT(array(strict, batch), ElementsAre(2, 0, 1, 1));
}

TEST(Metrics, AreMadeByName) {
  for (const std::string& name : metric_names()) EXPECT_TRUE(metric_named(name)) << name;
  EXPECT_THAT(metric_named("acuracy").error().message, Mentions("accuracy", "loss"));
}

}  // namespace
}  // namespace muster::train
