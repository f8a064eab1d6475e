#include "muster/graph/function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "muster/graph/graph.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::graph {
namespace {
namespace control_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor vector_of(std::vector<float> values) {
  return Tensor::from<float>(values, {static_cast<std::int64_t>(values.size())});
}

std::vector<float> elements(const Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

Value plus(const Value& a, const Value& b) { return apply("add", {a, b}); }
Value times(const Value& a, const Value& b) { return apply("mul", {a, b}); }
Value total(const Value& x) { return apply("reduce_sum", {x}); }

const Tensor yes = Tensor::scalar(true);
const Tensor no = Tensor::scalar(false);

// One trace serves both answers.
TEST(Cond, ComputesTheBranchThatTheRunDecides) {
  const auto weight = std::make_shared<Parameter>("weight", vector_of({10, 20}));
  Function function("f", [&](std::span<const Value> inputs) -> Values {
    const Value outside = plus(inputs[1], inputs[1]);
    return cond(
        inputs[0], [&]() -> Values { return times(outside, weight); },
        [&]() -> Values {
          return plus(inputs[1], vector_of({5, 5}));
        });
  });
  const std::vector<Tensor> first{yes, vector_of({1, 2})}, second{no, vector_of({1, 2})};
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(elements((*function.call(first, "", {}))[0]), ElementsAre(20, 80));
    EXPECT_THAT(elements((*function.call(second, "", {}))[0]), ElementsAre(6, 7));
  }
  ASSERT_TRUE(weight->set(vector_of({1, 1})));
  EXPECT_THAT(elements((*function.call(first, "", {}))[0]), ElementsAre(2, 4));
  EXPECT_EQ(function.traces().size(), 1u);
}

TEST(Cond, GivesSeveralValuesAndThoseOfTheCodeAroundIt) {
  Function function("f", [](std::span<const Value> inputs) -> Values {
    return cond(
        inputs[0],
        [&]() -> Values {
          return {inputs[1], inputs[2]};
        },
        [&]() -> Values {
          return {inputs[2], inputs[2]};
        });
  });
  const std::vector<Tensor> inputs{no, vector_of({1}), vector_of({2})};
  const auto outputs = function.call(inputs, "", {});
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_THAT(elements((*outputs)[0]), ElementsAre(2));
  EXPECT_THAT(elements((*outputs)[1]), ElementsAre(2));
}

TEST(Cond, TheGradientGoesThroughTheBranchThatWasComputed) {
  const auto weight = std::make_shared<Parameter>("weight", vector_of({10, 20}));
  const auto function =
      value_and_grad("f",
                     [&](std::span<const Value> inputs) -> Values {
                       const Values made = cond(
                           inputs[0], [&]() -> Values { return times(times(inputs[1], inputs[1]), weight); },
                           [&]() -> Values { return plus(inputs[1], inputs[1]); });
                       return total(times(made[0], vector_of({1, 3})));
                     },
                     {.parameters = {weight}, .positions = {1}});
  const std::vector<Tensor> first{yes, vector_of({1, 2})}, second{no, vector_of({1, 2})};
  const auto up = function->call(first, "", {});
  ASSERT_TRUE(up) << up.error().message;
  EXPECT_THAT(elements((*up)[1]), ElementsAre(2 * 10 * 1, 2 * 2 * 20 * 3));
  EXPECT_THAT(elements((*up)[2]), ElementsAre(1, 4 * 3));
  const auto down = function->call(second, "", {});
  ASSERT_TRUE(down) << down.error().message;
  EXPECT_THAT(elements((*down)[1]), ElementsAre(2, 6));
  EXPECT_THAT(elements((*down)[2]), ElementsAre(0, 0));
}

TEST(Cond, BranchesMayBranchAndGradientsFollow) {
  const auto function = value_and_grad("f",
                                       [&](std::span<const Value> inputs) -> Values {
                                         const Value& x = inputs[2];
                                         return total(cond(
                                             inputs[0],
                                             [&]() -> Values {
                                               return cond(
                                                   inputs[1], [&]() -> Values { return times(x, x); },
                                                   [&]() -> Values { return x; });
                                             },
                                             [&]() -> Values { return plus(x, x); })[0]);
                                       },
                                       {.parameters = {}, .positions = {2}});
  const auto gradient = [&](const Tensor& outer, const Tensor& inner) {
    const std::vector<Tensor> inputs{outer, inner, vector_of({3})};
    const auto result = function->call(inputs, "", {});
    EXPECT_TRUE(result) << result.error().message;
    return result ? elements((*result)[1])[0] : 0;
  };
  EXPECT_EQ(gradient(yes, yes), 6);
  EXPECT_EQ(gradient(yes, no), 1);
  EXPECT_EQ(gradient(no, yes), 2);
}

TEST(Cond, BranchesOfDifferentTypesAreAnError) {
  Function function("f", [](std::span<const Value> inputs) -> Values {
    return cond(
        inputs[0], [&]() -> Values { return inputs[1]; }, [&]() -> Values { return total(inputs[1]); });
  });
  const std::vector<Tensor> inputs{yes, vector_of({1, 2})};
  const auto failed = function.call(inputs, "", {});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, Mentions("float32 (2,)", "false", "float32 ()"));
}

TEST(Cond, WhatHasAnEffectIsRefusedInABranch) {
  Function function("f", [](std::span<const Value> inputs) -> Values {
    return cond(
        inputs[0], [&]() -> Values { return apply("all_reduce", {inputs[1]}); },
        [&]() -> Values { return inputs[1]; });
  });
  const std::vector<Tensor> inputs{yes, vector_of({1})};
  const auto failed = function.call(inputs, "", {});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, Mentions("all_reduce", "inside"));
}

TEST(Cond, AnErrorOfTheRunComesOut) {
  Function function("f", [](std::span<const Value> inputs) -> Values {
    return cond(
        inputs[0],
        [&]() -> Values {
          return apply("gather", {inputs[1], inputs[2]});
        },
        [&]() -> Values { return inputs[1]; });
  });
  const std::int64_t index[] = {7};
  const std::vector<Tensor> inputs{yes, vector_of({1}), Tensor::from<std::int64_t>(index, {1})};
  const auto failed = function.call(inputs, "", {});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("index 7"));
}

struct Setting final : Versioned {
  std::uint64_t version = next_version();
  std::uint64_t tree_version() const override { return version; }
  std::string description() const override { return "Setting"; }
};

TEST(Cond, WhatABranchDependsOnIsWatched) {
  Setting setting;
  Function function("f", [&](std::span<const Value> inputs) -> Values {
    return cond(
        inputs[0],
        [&]() -> Values {
          watch(setting);
          return plus(inputs[1], inputs[1]);
        },
        [&]() -> Values { return inputs[1]; });
  });
  const std::vector<Tensor> inputs{yes, vector_of({1})};
  ASSERT_TRUE(function.call(inputs, "", {}));
  setting.version = next_version();
  ASSERT_TRUE(function.call(inputs, "", {}));
  EXPECT_EQ(function.traces().size(), 2u);
}

TEST(Cond, OutsideATraceOneBranchIsCalled) {
  int calls = 0;
  const auto count = [&]() -> Values {
    ++calls;
    return Value(vector_of({1}));
  };
  const auto never = []() -> Values { throw Exception(Code::internal, "the other branch was called"); };
  cond(yes, count, never);
  cond(Tensor::scalar(0.0F), never, count);
  EXPECT_EQ(calls, 2);
  EXPECT_THAT(ERROR_OF(cond(vector_of({1, 2}), count, never)), Mentions("decides", "float32 (2,)"));
}

// (count, x): x is doubled count times.
Values doubled(const Value& count, const Value& x) {
  const std::vector<Value> init{count, x};
  return while_loop([](std::span<const Value> state) -> Values { return state[0]; },
                    [&](std::span<const Value> state) -> Values {
                      return {plus(state[0], Tensor::scalar(-1.0F)), plus(state[1], state[1])};
                    },
                    init);
}

TEST(WhileLoop, RunsAsLongAsItsTestSays) {
  Function function("f",
                    [](std::span<const Value> inputs) -> Values { return doubled(inputs[0], inputs[1])[1]; });
  for (const float count : {0.0F, 1.0F, 5.0F}) {
    const std::vector<Tensor> inputs{Tensor::scalar(count), vector_of({1, 3})};
    const auto outputs = function.call(inputs, "", {});
    ASSERT_TRUE(outputs) << outputs.error().message;
    const float factor = std::pow(2.0F, count);
    EXPECT_THAT(elements((*outputs)[0]), ElementsAre(factor, 3 * factor));
    EXPECT_THAT(elements(doubled(inputs[0], inputs[1])[1].tensor()), ElementsAre(factor, 3 * factor));
  }
  EXPECT_EQ(function.traces().size(), 1u);
}

TEST(WhileLoop, TheTypesOfTheStateStay) {
  Function function("f", [](std::span<const Value> inputs) -> Values {
    return while_loop([](std::span<const Value> state) -> Values { return total(state[0]); },
                      [](std::span<const Value> state) -> Values { return total(state[0]); }, inputs);
  });
  const std::vector<Tensor> inputs{vector_of({1, 2})};
  const auto failed = function.call(inputs, "", {});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, Mentions("float32 (2,)", "body", "float32 ()"));
}

TEST(WhileLoop, ItsGradientIsNotProvided) {
  const auto function = value_and_grad(
      "f", [](std::span<const Value> inputs) -> Values { return total(doubled(inputs[0], inputs[1])[1]); },
      {.parameters = {}, .positions = {1}});
  const std::vector<Tensor> inputs{Tensor::scalar(1.0F), vector_of({1})};
  const auto failed = function->call(inputs, "", {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::not_provided);
  EXPECT_THAT(failed.error().message, Mentions("pass", "while_loop"));
}

}  // namespace control_test
}  // namespace
}  // namespace muster::graph
