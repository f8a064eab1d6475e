// Eager mode: ops run at once, and gradients come from a tape.
#include "muster/graph/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/graph/random_streams.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::graph {
namespace {
namespace tape_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Eager {
 public:
  Eager() { set_eager(true); }
  ~Eager() { set_eager(false); }
};

Tensor vector_of(std::vector<float> values) {
  return Tensor::from<float>(values, {static_cast<std::int64_t>(values.size())});
}

std::vector<float> elements(const Value& value) {
  const Tensor tensor = *value.read();
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

// sum(tanh(x * w) + x)
Values net(const Value& x, const Value& w) {
  return apply("reduce_sum", {apply("add", {apply("tanh", {apply("mul", {x, w})}), x})});
}

TEST(Tape, GivesTheBitsOfTheTrace) {
  const auto weight = std::make_shared<Parameter>("w", vector_of({0.3f, -2, 0.7f}));
  const auto function =
      value_and_grad("net", [&](std::span<const Value> inputs) { return net(inputs[0], weight); },
                     {.parameters = {weight}, .positions = {0}});
  const std::vector<Value> inputs{vector_of({1, 2, 3})};
  const Values traced = (*function)(inputs);
  const Eager mode;
  const Values taped = (*function)(inputs);
  ASSERT_EQ(traced.size(), 3u);
  ASSERT_EQ(taped.size(), 3u);
  EXPECT_EQ(function->trace_count(), 1u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(elements(taped[i]), elements(traced[i]));
}

TEST(Tape, LetsCodeLookAtElements) {
  const auto function =
      value_and_grad("branch",
                     [](std::span<const Value> inputs) -> Values {
                       const bool negative = elements(inputs[0])[0] < 0;
                       return apply("mul", {inputs[0], Tensor::scalar(negative ? -3.f : 2.f)});
                     },
                     {.positions = {0}});
  const Eager mode;
  EXPECT_THAT(elements((*function)(Values(Value(vector_of({5}))))[1]), ElementsAre(2));
  EXPECT_THAT(elements((*function)(Values(Value(vector_of({-5}))))[1]), ElementsAre(-3));
  EXPECT_EQ(function->trace_count(), 0u);
}

TEST(Tape, DifferentiatesAGradient) {
  const auto cube = [](std::span<const Value> inputs) -> Values {
    return apply("mul", {apply("mul", {inputs[0], inputs[0]}), inputs[0]});
  };
  const auto first = value_and_grad("cube", cube, {.positions = {0}});
  const auto second =
      value_and_grad("slope", [&](std::span<const Value> inputs) -> Values { return (*first)(inputs)[1]; },
                     {.positions = {0}});
  const Eager mode;
  const Values answer = (*second)(Values(Value(vector_of({2}))));
  EXPECT_THAT(elements(answer[0]), ElementsAre(12));  // 3 x^2
  EXPECT_THAT(elements(answer[1]), ElementsAre(12));  // 6 x
}

TEST(Tape, GivesZerosWhereTheLossDoesNotDepend) {
  const auto function = value_and_grad("first",
                                       [](std::span<const Value> inputs) -> Values {
                                         return apply("mul", {inputs[0], inputs[0]});
                                       },
                                       {.positions = {0, 1}});
  const Eager mode;
  const Values answer = (*function)(Values{Value(vector_of({3})), Value(vector_of({4, 5}))});
  EXPECT_THAT(elements(answer[1]), ElementsAre(6));
  EXPECT_THAT(elements(answer[2]), ElementsAre(0, 0));
}

TEST(Tape, TreatsIntegersAsTheTraceDoes) {
  const auto function =
      value_and_grad("casts",
                     [](std::span<const Value> inputs) -> Values {
                       return apply("cast", {apply("cast", {inputs[0]}, {{"dtype", DType::int32}})},
                                    {{"dtype", DType::float32}});
                     },
                     {.positions = {0}});
  const Eager mode;
  const Values answer = (*function)(Values(Value(vector_of({3}))));
  ASSERT_EQ(answer.size(), 2u);  // as in a trace: integers carry no gradient
  EXPECT_THAT(elements(answer[1]), ElementsAre(0));
  const auto of_integers = value_and_grad("of integers",
                                          [](std::span<const Value> inputs) -> Values {
                                            return apply("cast", {inputs[0]}, {{"dtype", DType::int32}});
                                          },
                                          {.positions = {0}});
  EXPECT_THAT(ERROR_OF((*of_integers)(Values(Value(vector_of({3}))))), Mentions("floating", "gradients"));
}

TEST(Tape, RunsACompiledFunctionInlineWhileItRecords) {
  Function twice("twice", [](std::span<const Value> inputs) -> Values {
    return apply("add", {inputs[0], inputs[0]});
  });
  const auto function = value_and_grad("outer", [&](std::span<const Value> inputs) { return twice(inputs); },
                                       {.positions = {0}});
  const Eager mode;
  EXPECT_THAT(elements((*function)(Values(Value(vector_of({1}))))[1]), ElementsAre(2));
  EXPECT_EQ(twice.trace_count(), 0u);
  EXPECT_THAT(elements(twice(Values(Value(vector_of({1}))))[0]), ElementsAre(2));
  EXPECT_EQ(twice.trace_count(), 1u);
}

TEST(DefaultContext, IsTheInnermostScopes) {
  const ContextScope outer({.seed = 1});
  {
    const ContextScope inner({.seed = 2});
    EXPECT_EQ(default_context().seed, 2u);
  }
  EXPECT_EQ(default_context().seed, 1u);
}

TEST(RandomStreams, BeginAnewInEachRunAsTheyDoInEachTrace) {
  const ContextScope outer({.step = 1});
  EXPECT_EQ(next_random_stream(), 0);
  {
    const ContextScope part({.step = 1});  // a cell that is called in the same step
    EXPECT_EQ(next_random_stream(), 1);
  }
  {
    const ContextScope other({.step = 2});
    EXPECT_EQ(next_random_stream(), 0);
  }
  EXPECT_EQ(next_random_stream(), 2);
  begin_random_streams();  // set_seed
  EXPECT_EQ(next_random_stream(), 0);
  const auto trace = Trace::begin("trace");
  const Trace::Scope tracing(*trace);
  EXPECT_EQ(next_random_stream(), 0);
}

}  // namespace tape_test
}  // namespace
}  // namespace muster::graph
