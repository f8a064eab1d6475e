// bfloat16 in graphs: which dtype ops compute in, what casts cost nothing, and how far results are from
// float32.
#include "muster/graph/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "muster/graph/graph.h"
#include "muster/graph/plan.h"
#include "tests/unit/base/error_of.h"

namespace muster::graph {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Rule = Precision::Rule;

constexpr double precision = 1.0 / 256;  // half a unit in the last of 8 bits, relative

Tensor numbers(Shape shape, std::uint64_t number, DType dtype = DType::float32) {
  const RandomStream random(11, number);
  Tensor exact(DType::float64, std::move(shape));
  for (std::int64_t i = 0; i < exact.elements(); ++i)
    exact.data<double>()[i] = random.normal(static_cast<std::uint64_t>(i));
  return exact.cast(dtype);
}

ParameterPtr parameter(Shape shape, std::uint64_t number) {
  return std::make_shared<Parameter>("p", numbers(std::move(shape), number));
}

std::vector<double> doubles(const Value& value) {
  const Tensor wide = floating_as(value.read().value(), DType::float64).tensor();
  return {wide.span<double>().begin(), wide.span<double>().end()};
}

double greatest(const std::vector<double>& values) {
  double found = 0;
  for (const double value : values) found = std::max(found, std::abs(value));
  return found;
}

void expect_near(const Value& found, const Value& expected, double tolerance) {
  const std::vector<double> left = doubles(found);
  const std::vector<double> right = doubles(expected);
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i)
    ASSERT_NEAR(left[i], right[i], tolerance * greatest(right)) << "element " << i;
}

// What `op` gives under `rule`.
DType dtype_under(Rule rule, std::string_view op, std::initializer_list<Value> inputs) {
  const PrecisionScope scope({.rule = rule});
  const Value made = apply(op, inputs);
  return made.dtype();
}

TEST(Precision, LowCastsParametersAndWhatTheyMeet) {
  const Value weight = parameter({4, 4}, 1);
  const Value wide = numbers({4, 4}, 2);
  const Value low = numbers({4, 4}, 2, DType::bfloat16);
  EXPECT_EQ(dtype_under(Rule::low, "matmul", {low, weight}), DType::bfloat16);
  EXPECT_EQ(dtype_under(Rule::low, "add", {low, wide}), DType::bfloat16);
  EXPECT_EQ(dtype_under(Rule::low, "relu", {weight}), DType::bfloat16);
  EXPECT_EQ(dtype_under(Rule::low, "relu", {wide}), DType::float32) << "an explicit float32 stays";
  EXPECT_EQ(weight.dtype(), DType::float32);
}

TEST(Precision, ListedComputesProductsInLowAndGivesFloat32) {
  const Value x = numbers({4, 4}, 1);
  const PrecisionScope scope({.rule = Rule::listed});
  const Value product = apply("matmul", {x, x});
  EXPECT_EQ(product.dtype(), DType::float32);
  const PrecisionScope inner({.rule = Rule::given});
  const Value low = floating_as(x, DType::bfloat16);
  expect_near(product, floating_as(apply("matmul", {low, low}), DType::float32), 0);
  expect_near(apply("exp", {x}), apply("exp", {floating_as(x, DType::float32)}), 0);
}

TEST(Precision, AutomaticGoesByTheRows) {
  const Value low = numbers({4, 4}, 1, DType::bfloat16);
  const Value wide = numbers({4, 4}, 1);
  EXPECT_EQ(dtype_under(Rule::automatic, "matmul", {wide, wide}), DType::bfloat16);
  EXPECT_EQ(dtype_under(Rule::automatic, "exp", {low}), DType::float32);
  EXPECT_EQ(dtype_under(Rule::automatic, "softmax", {low}), DType::float32);
  EXPECT_EQ(dtype_under(Rule::automatic, "relu", {low}), DType::bfloat16);
  EXPECT_EQ(dtype_under(Rule::automatic, "relu", {wide}), DType::float32);
  EXPECT_EQ(dtype_under(Rule::automatic, "concat", {low, wide}), DType::float32);
  EXPECT_EQ(dtype_under(Rule::automatic, "concat", {low, low}), DType::bfloat16);
}

TEST(Precision, TheInnermostScopeCounts) {
  const Value weight = parameter({2, 2}, 1);
  const PrecisionScope outer({.rule = Rule::low});
  {
    const PrecisionScope inner({.rule = Rule::given});
    EXPECT_EQ(apply("relu", {weight}).dtype(), DType::float32);
  }
  EXPECT_EQ(apply("relu", {weight}).dtype(), DType::bfloat16);
}

TEST(Precision, WholeNumbersAndWhatOpsWriteStayThemselves) {
  const Value counter = std::make_shared<Parameter>("n", Tensor::scalar<std::int32_t>(1));
  const Value weight = parameter({3}, 1);
  const PrecisionScope scope({.rule = Rule::low});
  EXPECT_EQ(apply("neg", {counter}).dtype(), DType::int32);
  apply("assign", {weight, numbers({3}, 2)});
  expect_near(weight.parameter()->storage(), numbers({3}, 2), 0);
}

// y = sum(w * (low(a) low(b))), a scalar whose gradients differ everywhere.
Values weighted_product(std::span<const Value> inputs, DType dtype) {
  const Value product = apply("matmul", {floating_as(inputs[0], dtype), floating_as(inputs[1], dtype)});
  const Value wide = floating_as(product, inputs[0].dtype());
  return apply("reduce_sum", {apply("mul", {wide, numbers(wide.shape(), 5, wide.dtype())})});
}

TEST(Precision, GradientsPassCastsAndStayNearThoseOfFloat64) {
  const Tensor a = numbers({17, 24}, 1), b = numbers({24, 9}, 2);
  const auto low = value_and_grad(
      "low", [](std::span<const Value> inputs) { return weighted_product(inputs, DType::bfloat16); },
      {.parameters = {}, .positions = {0, 1}});
  const auto exact = value_and_grad(
      "exact", [](std::span<const Value> inputs) { return weighted_product(inputs, DType::float64); },
      {.parameters = {}, .positions = {0, 1}});
  const Tensor inputs[] = {a, b};
  const Tensor wide[] = {floating_as(a, DType::float64).tensor(), floating_as(b, DType::float64).tensor()};
  const auto found = low->call(inputs, {}, {});
  const auto expected = exact->call(wide, {}, {});
  ASSERT_TRUE(found && expected);
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_EQ((*found)[i].dtype(), DType::float32);
    expect_near((*found)[i], (*expected)[i], 3 * precision);
  }
}

// A step's plan of an image through a convolution with a weight in float32.
std::unique_ptr<Function> convolution(const ParameterPtr& weight) {
  return std::make_unique<Function>("step", [weight](std::span<const Value> inputs) -> Values {
    const PrecisionScope scope({.rule = Rule::low});
    const Value y = apply("conv2d", {floating_as(inputs[0], DType::bfloat16), weight},
                          {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}});
    const Value loss = apply("reduce_sum", {apply("square", {floating_as(y, DType::float32)})});
    const Value wanted = weight;
    return {loss, Trace::current()->gradient({&loss, 1}, {&wanted, 1})[0]};
  });
}

TEST(Precision, TheGradientOfAWeightIsNotRoundedOnItsWayToFloat32) {
  const auto weight = parameter({16, 16, 3, 3}, 2);
  const auto function = convolution(weight);
  const Tensor image[] = {numbers({2, 16, 8, 8}, 1)};
  const auto outputs = function->call(image, {}, {});
  ASSERT_TRUE(outputs) << outputs.error().message;
  const Tensor& gradient = (*outputs)[1];
  ASSERT_EQ(gradient.dtype(), DType::float32);
  bool any_finer = false;
  for (const float value : gradient.span<float>())
    any_finer = any_finer || static_cast<float>(bfloat16(value)) != value;
  EXPECT_TRUE(any_finer);
}

TEST(Precision, CastsThatUndoEachOtherAreNotComputed) {
  Function function("f", [](std::span<const Value> inputs) -> Values {
    const Value wide = floating_as(apply("relu", {inputs[0]}), DType::float32);
    return apply("neg", {floating_as(wide, DType::bfloat16)});
  });
  const Tensor x[] = {numbers({5}, 1, DType::bfloat16)};
  const auto outputs = function.call(x, {}, {});
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_THAT(function.plan()->to_string(), Not(HasSubstr("cast")));
  expect_near((*outputs)[0], apply("neg", {apply("relu", {x[0]})}), 0);
}

TEST(Precision, OneParameterInBfloat16IsUpdatedInItsOwnDtype) {
  const auto weight = std::make_shared<Parameter>("p", numbers({40}, 1, DType::bfloat16));
  const Value before = weight->storage().clone();
  const Value gradient = numbers({40}, 2, DType::bfloat16);
  apply("sgd", {weight, gradient, Tensor::scalar(0.5F)});
  const Value wide =
      apply("sub", {floating_as(before, DType::float32),
                    apply("mul", {floating_as(gradient, DType::float32), Tensor::scalar(0.5F)})});
  expect_near(weight->storage(), floating_as(wide, DType::bfloat16), 0);
}

TEST(Precision, BatchNormTakesFloat32StatisticsBesideBfloat16AndOnlyThose) {
  const auto ones = [](DType dtype) {
    return floating_as(Tensor::from<float>(std::vector<float>(3, 1), {3}), dtype);
  };
  const Value x = numbers({4, 3, 2, 2}, 1, DType::bfloat16);
  const auto with = [&](DType dtype) {
    const Value inputs[] = {x, ones(dtype), ones(dtype), ones(dtype), ones(dtype)};
    return apply_all("batch_norm", inputs, {{"training", true}});
  };
  const Values made = with(DType::float32);
  EXPECT_EQ(made[0].dtype(), DType::bfloat16);
  EXPECT_EQ(made[1].dtype(), DType::float32);
  EXPECT_THAT(ERROR_OF(with(DType::bfloat16)), HasSubstr("must be float32 (3,)"));
}

TEST(Precision, AProductMayGiveFloat32OfBfloat16Unrounded) {
  const Value a = numbers({5, 7}, 1, DType::bfloat16), b = numbers({7, 3}, 2, DType::bfloat16);
  const Value wide = apply("matmul", {a, b}, {{"dtype", DType::float32}});
  ASSERT_EQ(wide.dtype(), DType::float32);
  expect_near(wide, apply("matmul", {floating_as(a, DType::float32), floating_as(b, DType::float32)}), 1e-6);
  const Value x = numbers({2, 16, 4, 4}, 3, DType::bfloat16), dy = numbers({2, 16, 2, 2}, 4, DType::bfloat16);
  Attributes attributes{{"kernel", std::vector<std::int64_t>{3, 3}}};
  const Value full = apply("conv2d_grad_weight",
                           {floating_as(x, DType::float32), floating_as(dy, DType::float32)}, attributes);
  attributes.set("dtype", DType::float32);
  expect_near(apply("conv2d_grad_weight", {x, dy}, attributes), full, 1e-5);
}

TEST(Precision, ACastKeepsTheOrderAndThePaddingOfAKernelsFormat) {
  Function function("f", [](std::span<const Value> inputs) -> Values {
    const Value y = apply("conv2d", {inputs[0], inputs[1]});
    const Value low = apply("relu", {floating_as(y, DType::bfloat16)});
    return apply("add", {floating_as(low, DType::float32), y});
  });
  const Tensor inputs[] = {numbers({2, 20, 5, 5}, 1), numbers({20, 20, 3, 3}, 2)};
  const auto found = function.call(inputs, {}, {});
  ASSERT_TRUE(found) << found.error().message;
  const Value y = apply("conv2d", {inputs[0], inputs[1]});
  const Value low = apply("relu", {floating_as(y, DType::bfloat16)});
  expect_near((*found)[0], apply("add", {floating_as(low, DType::float32), y}), precision);
}

TEST(Precision, WhatWasCastBeforeAnUpdateKeepsItsValue) {
  const auto weight = std::make_shared<Parameter>("p", numbers({6}, 1, DType::bfloat16));
  const Value before = weight->storage().clone();
  Function function("f", [&](std::span<const Value> inputs) -> Values {
    const Value wide = floating_as(weight, DType::float32);
    const Value updated = apply("sgd", {weight, inputs[0], Tensor::scalar(1.0F)});
    return {floating_as(wide, DType::bfloat16), updated};
  });
  const Tensor gradient[] = {numbers({6}, 2, DType::bfloat16)};
  const auto found = function.call(gradient, {}, {});
  ASSERT_TRUE(found) << found.error().message;
  expect_near((*found)[0], before, 0);
}

}  // namespace
}  // namespace muster::graph
