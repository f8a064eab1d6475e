// Gradients that code gives itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "muster/graph/graph.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::graph {
namespace {
namespace own_gradient_test {

using ::testing::ElementsAre;

Tensor vector_of(std::vector<float> values) {
  return Tensor::from<float>(values, {static_cast<std::int64_t>(values.size())});
}

std::vector<float> elements(const Value& value) {
  const Tensor tensor = *value.read();
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

Value times(const Value& x, float factor) { return apply("mul", {x, Tensor::scalar(factor)}); }

// x * x, with the gradient factor * dout.
Value squared(const Value& x, float factor) {
  return with_own_gradient(std::vector<Value>{x},
                           [&]() -> Values {
                             return apply("mul", {x, x});
                           },
                           {"squared", [factor](auto, auto, std::span<const Value> gradients) -> Values {
                              return times(gradients[0], factor);
                            }})[0];
}

// Of a traced plan and of a tape, which are the same.
std::vector<float> gradient_of(const std::function<Value(const Value&)>& code, std::vector<float> x) {
  const auto function = value_and_grad(
      "code", [&](std::span<const Value> inputs) -> Values { return code(inputs[0]); }, {.positions = {0}});
  const std::vector<Value> inputs{vector_of(std::move(x))};
  const std::vector<float> traced = elements((*function)(inputs)[1]);
  set_eager(true);
  const std::vector<float> taped = elements((*function)(inputs)[1]);
  set_eager(false);
  EXPECT_EQ(traced, taped);
  return traced;
}

TEST(OwnGradient, TakesThePlaceOfThatOfTheBody) {
  EXPECT_THAT(gradient_of([](const Value& x) { return squared(x, 7); }, {1, 2}), ElementsAre(7, 7));
}

TEST(OwnGradient, OfTheOuterOneCountsWhereOneIsInside) {
  const auto nested = [](const Value& x) {
    return with_own_gradient(std::vector<Value>{x}, [&]() -> Values { return squared(x, 7); },
                             {"outer", [](auto, auto, std::span<const Value> gradients) -> Values {
                                return times(gradients[0], 3);
                              }})[0];
  };
  EXPECT_THAT(gradient_of(nested, {1, 2}), ElementsAre(3, 3));
}

TEST(OwnGradient, LeavesWhatFlowsPastTheOutputsAsItIs) {
  const auto leaking = [](const Value& x) {
    Value inside;
    const Values outputs = with_own_gradient(
        std::vector<Value>{x},
        [&]() -> Values {
          inside = times(x, 5);
          return times(inside, 2);
        },
        {"leaking",
         [](auto, auto, std::span<const Value> gradients) -> Values { return times(gradients[0], 100); }});
    return apply("add", {outputs[0], inside});
  };
  EXPECT_THAT(gradient_of(leaking, {1, 2}), ElementsAre(105, 105));
}

TEST(OwnGradient, OfInputsThatAreGivenBackStaysApart) {
  const auto reversed = [](const Value& x) {
    const Value same = with_own_gradient(
        std::vector<Value>{x}, [&]() -> Values { return x; },
        {"reversed",
         [](auto, auto, std::span<const Value> gradients) -> Values { return times(gradients[0], -1); }})[0];
    return apply("add", {times(same, 2), times(x, 3)});
  };
  EXPECT_THAT(gradient_of(reversed, {1, 2}), ElementsAre(1, 1));
}

TEST(OwnGradient, PassesThroughABranchThatIsDecidedInTheRun) {
  const auto branched = [](const Value& x) {
    return cond(
        apply("greater", {apply("reduce_sum", {x}), Tensor::scalar(0.F)}),
        [&]() -> Values { return squared(x, 7); }, [&]() -> Values { return times(x, 2); })[0];
  };
  EXPECT_THAT(gradient_of(branched, {1, 2}), ElementsAre(7, 7));
  EXPECT_THAT(gradient_of(branched, {-1, -2}), ElementsAre(2, 2));
}

TEST(OwnGradient, OfAnotherShapeIsAnErrorThatNamesTheRuleTheInputAndBothTypes) {
  const auto wrong = [](std::span<const Value> inputs) {
    return with_own_gradient(inputs, [&]() -> Values { return times(inputs[0], 2); },
                             {"Scale 'fc'", [](auto, auto, auto) -> Values {
                                return Value(vector_of({1, 2, 3}));
                              }});
  };
  const auto function = value_and_grad("wrong", wrong, {.positions = {0}});
  const auto error = ERROR_OF((*function)(std::vector<Value>{vector_of({1, 2})}));
  EXPECT_THAT(error, Mentions("Scale 'fc'", "input 0", "float32 (3,)", "float32 (2,)"));
}

TEST(OwnGradient, OfAnotherDtypeOrOfABroadcastShapeIsFittedToItsInput) {
  const auto wide = [](const Value& x) {
    return with_own_gradient(
        std::vector<Value>{x}, [&]() -> Values { return times(x, 2); },
        {"wide", [](auto, auto, auto) -> Values {
           return {apply(
               "fill", std::span<const Value>{},
               {{"dtype", DType::float64}, {"shape", std::vector<std::int64_t>{3, 2}}, {"value", 5.0}})};
         }})[0];
  };
  EXPECT_THAT(gradient_of(wide, {1, 2}), ElementsAre(15, 15));
}

}  // namespace own_gradient_test
}  // namespace
}  // namespace muster::graph
