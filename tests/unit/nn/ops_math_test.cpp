#include "muster/nn/ops_math.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "muster/nn/nn.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::nn::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor floats(std::vector<float> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return Tensor::from<float>(values, {size});
}

Tensor wholes(std::vector<std::int32_t> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return Tensor::from<std::int32_t>(values, {size});
}

template <class T = float>
std::vector<T> elements(const Value& value) {
  const Tensor tensor = value.tensor();
  return {tensor.span<T>().begin(), tensor.span<T>().end()};
}

TEST(MathOps, OperatorsTakeNumbersOnEitherSide) {
  const Value x = floats({1, 2, 4});
  EXPECT_THAT(elements(x * 2 + 1), ElementsAre(3, 5, 9));
  EXPECT_THAT(elements(1 - x), ElementsAre(0, -1, -3));
  EXPECT_THAT(elements(8 / x), ElementsAre(8, 4, 2));
  EXPECT_THAT(elements(-x % 3), ElementsAre(2, 1, 2));
  EXPECT_THAT(elements<bool>(x >= 2), ElementsAre(false, true, true));
  EXPECT_THAT(elements<bool>(2 < x), ElementsAre(false, false, true));
}

TEST(MathOps, OperatorsTakeTensorsAndParametersToo) {
  const Tensor x = floats({1, 2});
  const auto weight = std::make_shared<graph::Parameter>("weight", floats({10, 20}));
  EXPECT_THAT(elements(x + weight), ElementsAre(11, 22));
  EXPECT_THAT(elements(weight * x), ElementsAre(10, 40));
  EXPECT_THAT(elements(x - x), ElementsAre(0, 0));
}

TEST(MathOps, OperandsMeetInOneDtype) {
  EXPECT_EQ(promoted(DType::bool_, DType::uint8), DType::uint8);
  EXPECT_EQ(promoted(DType::int32, DType::int64), DType::int64);
  EXPECT_EQ(promoted(DType::float32, DType::int64), DType::float32);
  EXPECT_EQ(promoted(DType::float32, DType::float64), DType::float64);
  EXPECT_EQ(promoted(DType::uint8, DType::int32), DType::int32);
  EXPECT_EQ(promoted(DType::int32, DType::uint32), DType::int64);
  EXPECT_THAT(elements(Value(wholes({1, 2})) + Value(floats({0.5, 0.5}))), ElementsAre(1.5, 2.5));
}

TEST(MathOps, WholeNumbersStayWholeBesideWholeOnesAndDivideAsFractions) {
  const Value x = wholes({7, -7});
  EXPECT_THAT(elements<std::int32_t>(x * 2), ElementsAre(14, -14));
  EXPECT_THAT(elements(x * 0.5), ElementsAre(3.5, -3.5));
  EXPECT_THAT(elements(x / 2), ElementsAre(3.5, -3.5));
  EXPECT_THAT(elements<std::int32_t>(floor_div(x, number_beside(x, std::int64_t{2}))), ElementsAre(3, -4));
  EXPECT_NEAR(elements(exp(x))[0], std::exp(7.0F), 1e-3);
  EXPECT_THAT(elements<std::int32_t>(reduce_mean(x)), ElementsAre(0));
}

TEST(MathOps, ErrorsNameTheOpAndTheShapes) {
  EXPECT_THAT(ERROR_OF(floats({1, 2}) + floats({1, 2, 3})), Mentions("add", "(2,)", "(3,)", "together"));
}

TEST(MathOps, ANumberInATraceIsAConstantOfTheGraph) {
  graph::Function function("f", [](std::span<const Value> inputs) -> Values { return 2 * inputs[0] + 1; });
  const Tensor x = floats({1, 2});
  for (int run = 0; run < 2; ++run)
    EXPECT_THAT(elements((*function.call({&x, 1}, {}, {}))[0]), ElementsAre(3, 5));
}

// ---- Dropout
// -----------------------------------------------------------------------------------------------

std::vector<float> dropped(const RunContext& context, std::int64_t samples, std::int64_t elements_each) {
  graph::Function function("f",
                           [](std::span<const Value> inputs) -> Values { return dropout(inputs[0], 0.75); });
  const Tensor x(DType::float32, {samples, elements_each});
  std::fill_n(x.data<float>(), x.elements(), 3.0F);
  return elements((*function.call({&x, 1}, {}, context))[0]);
}

TEST(Dropout, KeepsAsManyAsWantedAndTheMean) {
  const auto y = dropped({.seed = 7}, 100, 1000);
  const auto kept = std::count(y.begin(), y.end(), 4.0F);
  EXPECT_EQ(kept + std::count(y.begin(), y.end(), 0.0F), 100000);
  EXPECT_NEAR(static_cast<double>(kept) / 100000, 0.75, 0.01);  // seven standard deviations
}

TEST(Dropout, DrawsTheSameForOneStepAndOthersForTheNext) {
  const auto y = dropped({.seed = 7, .step = 3}, 4, 50);
  EXPECT_EQ(y, dropped({.seed = 7, .threads = 4, .step = 3}, 4, 50));
  EXPECT_NE(y, dropped({.seed = 7, .step = 4}, 4, 50));
  EXPECT_NE(y, dropped({.seed = 8, .step = 3}, 4, 50));
}

TEST(Dropout, TwoOfOneGraphDrawDifferently) {
  graph::Function function("f", [](std::span<const Value> inputs) -> Values {
    return {dropout(inputs[0], 0.5), dropout(inputs[0], 0.5)};
  });
  const Tensor x(DType::float32, {64});
  std::fill_n(x.data<float>(), 64, 1.0F);
  const auto y = *function.call({&x, 1}, {}, {});
  EXPECT_NE(elements(y[0]), elements(y[1]));
}

TEST(Dropout, DoesNotDependOnHowManyWorkersShareABatch) {
  constexpr std::int64_t width = 13;
  const auto whole = dropped({.seed = 7, .step = 5}, 6, width);
  for (std::uint64_t workers : {2, 3}) {
    for (std::uint64_t rank = 0; rank < workers; ++rank) {
      const auto samples = static_cast<std::int64_t>(6 / workers);
      const RunContext context{.seed = 7, .step = 5, .first_sample = rank, .sample_stride = workers};
      const auto part = dropped(context, samples, width);
      for (std::int64_t k = 0; k < samples; ++k)
        for (std::int64_t c = 0; c < width; ++c) {
          const std::int64_t row = k * static_cast<std::int64_t>(workers) + static_cast<std::int64_t>(rank);
          EXPECT_EQ(part[static_cast<std::size_t>(k * width + c)],
                    whole[static_cast<std::size_t>(row * width + c)]);
        }
    }
  }
}

}  // namespace
}  // namespace muster::nn::ops
