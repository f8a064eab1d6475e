#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "muster/graph/graph.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::graph {
namespace {
namespace function_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor vector_of(std::vector<float> values) {
  return Tensor::from<float>(values, {static_cast<std::int64_t>(values.size())});
}

std::vector<float> elements(const Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

Value twice(const Value& x) { return apply("add", {x, x}); }

ParameterPtr parameter(const std::string& name, std::vector<float> values) {
  return std::make_shared<Parameter>(name, vector_of(std::move(values)));
}

// A cell in miniature: something with a version that traced code depends on.
struct Setting final : Versioned {
  std::uint64_t version = next_version();
  bool doubles = true;

  void set(bool wanted) {
    doubles = wanted;
    version = next_version();
  }
  std::uint64_t tree_version() const override { return version; }
  std::string description() const override { return "Setting"; }
};

TEST(Function, TracesOnceForEachSignatureAndSaysWhy) {
  int runs = 0;
  Function function("twice", [&](std::span<const Value> inputs) -> Values {
    ++runs;
    return twice(inputs[0]);
  });
  const std::vector<Tensor> two{vector_of({1, 2})}, three{vector_of({1, 2, 3})};
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(elements((*function.call(two, "", {}))[0]), ElementsAre(2, 4));
    EXPECT_THAT(elements((*function.call(three, "", {}))[0]), ElementsAre(2, 4, 6));
  }
  EXPECT_EQ(runs, 2);
  ASSERT_TRUE(function.call(two, "flag=true", {}));
  EXPECT_EQ(runs, 3);
  ASSERT_EQ(function.traces().size(), 3u);
  EXPECT_EQ(function.traces()[0].reason, "first call");
  EXPECT_THAT(function.traces()[1].reason, Mentions("input 0", "float32 (3,)", "float32 (2,)"));
  EXPECT_EQ(function.traces()[1].signature, "float32 (3,)");
  EXPECT_THAT(function.traces()[2].reason, Mentions("input 0", "float32 (2,)", "float32 (3,)"));
}

// One more context would be one more run: what a process draws that traces anew would be other numbers.
TEST(Function, IsTracedInTheContextOfItsRun) {
  static int asked = 0;
  set_context_provider([]() -> Result<RunContext> {
    ++asked;
    return RunContext{};
  });
  std::uint64_t step = 0;
  Function function("drop", [&](std::span<const Value> inputs) -> Values {
    step = default_context().step;
    return twice(inputs[0]);
  });
  ASSERT_TRUE(function.call(std::vector{vector_of({1})}, "", {.step = 7}));
  set_context_provider(nullptr);
  EXPECT_EQ(step, 7U);
  EXPECT_EQ(asked, 0);
}

TEST(Function, TracesAgainWhenWhatItDependedOnHasChanged) {
  Setting setting;
  Function function("maybe twice", [&](std::span<const Value> inputs) -> Values {
    watch(setting);
    return setting.doubles ? twice(inputs[0]) : apply("relu", {inputs[0]});
  });
  const std::vector<Tensor> inputs{vector_of({-1, 2})};
  EXPECT_THAT(elements((*function.call(inputs, "", {}))[0]), ElementsAre(-2, 4));
  setting.set(false);
  EXPECT_THAT(elements((*function.call(inputs, "", {}))[0]), ElementsAre(0, 2));
  EXPECT_THAT(elements((*function.call(inputs, "", {}))[0]), ElementsAre(0, 2));
  ASSERT_EQ(function.traces().size(), 2u);
  EXPECT_EQ(function.traces()[1].reason, "Setting was changed");
}

// A variable that a front end's code reads.
struct Variable final : Guards {
  int value = 1, seen = 0;
  bool is_read = true;

  void undo() override {}
  bool settle() override {
    seen = value;
    return is_read;
  }
  std::uint64_t tree_version() const override { return value == seen ? 0 : 1; }
  std::string description() const override { return "a variable"; }
};

TEST(Function, TracesAgainWhenItsGuardsFindAnotherValueThanWhenTheCodeHadRun) {
  std::vector<std::weak_ptr<Variable>> made;
  bool is_read = true;
  Function function("guarded", [&](std::span<const Value> inputs) -> Values {
    auto variable = std::make_shared<Variable>();
    variable->is_read = is_read;
    Trace::current()->set_guards(variable);
    ++variable->value;  // what the code does itself is no change
    made.push_back(variable);
    return twice(inputs[0]);
  });
  const std::vector<Tensor> two{vector_of({1, 2})};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(function.call(two, "", {}));
  ASSERT_EQ(function.trace_count(), 1u);
  made[0].lock()->value = 7;  // the plan keeps it
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(function.call(two, "", {}));
  ASSERT_EQ(function.trace_count(), 2u);
  EXPECT_EQ(function.traces()[1].reason, "a variable was changed");
  EXPECT_TRUE(made[0].expired());

  is_read = false;  // nothing to look at
  ASSERT_TRUE(function.call(two, "other", {}));
  EXPECT_TRUE(made[2].expired());
}

TEST(Function, SaysWhichExtraDiffersAsItsFrontEndWouldSayIt) {
  Function function("f", [&](std::span<const Value> inputs) -> Values { return twice(inputs[0]); });
  function.tell_extras_by([](std::string_view extra, std::string_view before) {
    return std::string(extra) + " and not " + std::string(before);
  });
  const std::vector<Tensor> inputs{vector_of({1})};
  ASSERT_TRUE(function.call(inputs, "two", {}));
  ASSERT_TRUE(function.call(inputs, "three", {}));
  EXPECT_EQ(function.traces()[1].reason, "three and not two");
}

TEST(Function, ReadsCapturedTensorsAndParametersAtEachCall) {
  const Tensor captured = vector_of({1, 2});
  const ParameterPtr weight = parameter("weight", {10, 20});
  Function function("f", [&](std::span<const Value> inputs) -> Values {
    return apply("add", {apply("add", {inputs[0], captured}), weight});
  });
  const std::vector<Tensor> inputs{vector_of({0, 0})};
  EXPECT_THAT(elements((*function.call(inputs, "", {}))[0]), ElementsAre(11, 22));
  captured.data<float>()[0] = 5;
  ASSERT_TRUE(weight->set(vector_of({30, 20})));
  EXPECT_THAT(elements((*function.call(inputs, "", {}))[0]), ElementsAre(35, 22));
  EXPECT_EQ(function.traces().size(), 1u);
}

TEST(Function, GivesTheFirstErrorAndWorksAfterwards) {
  bool wrong = true;
  Function function("f", [&](std::span<const Value> inputs) -> Values {
    return twice(apply("relu", {wrong ? apply("matmul", {inputs[0], inputs[0]}) : inputs[0]}));
  });
  const std::vector<Tensor> inputs{vector_of({1, 2})};
  const auto failed = function.call(inputs, "", {});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, Mentions("matmul", "matrices"));
  wrong = false;
  EXPECT_TRUE(function.call(inputs, "", {}));
}

TEST(Function, LetsAnExceptionOfTheBodyPassAndLeavesNoTrace) {
  Function function("f", [](std::span<const Value>) -> Values { throw std::runtime_error("from Python"); });
  EXPECT_THROW((void)function.call({}, "", {}), std::runtime_error);
  EXPECT_FALSE(is_tracing());
}

TEST(Function, CodeCannotBranchOnATracedTensor) {
  Error error;
  Function function("f", [&](std::span<const Value> inputs) -> Values {
    error = inputs[0].read().error();
    return inputs[0];
  });
  const std::vector<Tensor> inputs{vector_of({1})};
  ASSERT_TRUE(function.call(inputs, "", {}));
  EXPECT_THAT(error.message, Mentions("float32 (1,", "graph"));
}

TEST(Function, ATracedTensorThatLeftItsTraceIsAnError) {
  Value kept;
  Function function("keeps",
                    [&](std::span<const Value> inputs) -> Values { return kept = twice(inputs[0]); });
  Function other("uses", [&](std::span<const Value> inputs) -> Values {
    return apply("add", {kept, inputs[0]});
  });
  const std::vector<Tensor> inputs{vector_of({1})};
  ASSERT_TRUE(function.call(inputs, "", {}));
  const auto failed = other.call(inputs, "", {});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("a tensor of another graph"));
  EXPECT_THAT(ERROR_OF(twice(kept)), HasSubstr("was used outside it"));
}

TEST(Function, ResultsStayWhileTheyAreHeldAndBuffersAreUsedAgainAfterwards) {
  Function function("twice", [](std::span<const Value> inputs) -> Values { return twice(inputs[0]); });
  const std::vector<Tensor> ones{vector_of({1})}, fives{vector_of({5})};
  const Tensor held = (*function.call(ones, "", {}))[0];
  const std::byte* recycled = (*function.call(fives, "", {}))[0].bytes();
  EXPECT_THAT(elements(held), ElementsAre(2));
  const Tensor again = (*function.call(fives, "", {}))[0];
  EXPECT_EQ(again.bytes(), recycled);
  std::vector<Tensor> many;
  for (int i = 0; i < 40; ++i) many.push_back((*function.call(fives, "", {}))[0]);
  for (const Tensor& one : many) EXPECT_THAT(elements(one), ElementsAre(10));
  EXPECT_THAT(elements(held), ElementsAre(2));
}

TEST(Function, AnOutputMayBeAnInputAParameterOrAnotherOutput) {
  const ParameterPtr weight = parameter("weight", {3});
  Function function("f", [&](std::span<const Value> inputs) -> Values {
    const Value sum = twice(inputs[0]);
    return {inputs[0], weight, sum, sum,
            apply("reshape", {sum}, {{"shape", std::vector<std::int64_t>{1, 1}}})};
  });
  const std::vector<Tensor> inputs{vector_of({1})};
  const auto outputs = function.call(inputs, "", {});
  ASSERT_TRUE(outputs) << outputs.error().message;
  const float expected[] = {1, 3, 2, 2, 2};
  for (std::size_t i = 0; i < outputs->size(); ++i)
    EXPECT_EQ((*outputs)[i].data<float>()[0], expected[i]) << i;
  EXPECT_EQ((*outputs)[4].shape(), (Shape{1, 1}));
  EXPECT_NE((*outputs)[0].bytes(), inputs[0].bytes());
  EXPECT_NE((*outputs)[1].bytes(), weight->storage().bytes());
}

TEST(Function, MakesParametersFromSeedAndName) {
  const auto make = [](const std::string& name) {
    return std::make_shared<Parameter>(name, TensorType{DType::float32, {4}},
                                       [](const Tensor& out, const RandomStream& stream) {
                                         for (std::uint64_t i = 0; i < 4; ++i)
                                           out.data<float>()[i] = static_cast<float>(stream.uniform(i));
                                       });
  };
  const auto value_of = [&](const std::string& name, std::uint64_t seed) {
    Function function("f", [p = make(name)](std::span<const Value>) -> Values { return twice(p); });
    return elements((*function.call({}, "", {.seed = seed}))[0]);
  };
  EXPECT_EQ(value_of("fc.weight", 1), value_of("fc.weight", 1));
  EXPECT_NE(value_of("fc.weight", 1), value_of("fc.weight", 2));
  EXPECT_NE(value_of("fc.weight", 1), value_of("fc.bias", 1));
}

TEST(ValueAndGrad, GivesValuesThenGradientsInOneBuffer) {
  const ParameterPtr a = parameter("a", {1, 2, 3});
  const ParameterPtr b = parameter("b", {4, 5, 6});
  const ParameterPtr unused = parameter("unused", {7});
  const auto function =
      value_and_grad("f",
                     [&](std::span<const Value> inputs) -> Values {
                       const Value product = apply("mul", {apply("mul", {a, b}), inputs[0]});
                       return {apply("reduce_sum", {product}), product};
                     },
                     {.parameters = {a, unused, b}, .positions = {0}, .has_aux = true});
  const std::vector<Tensor> inputs{vector_of({1, 1, 2})};
  const auto outputs = function->call(inputs, "", {});
  ASSERT_TRUE(outputs) << outputs.error().message;
  ASSERT_EQ(outputs->size(), 6u);
  EXPECT_EQ((*outputs)[0].data<float>()[0], 4 + 10 + 36);
  EXPECT_THAT(elements((*outputs)[1]), ElementsAre(4, 10, 36));
  EXPECT_THAT(elements((*outputs)[2]), ElementsAre(4, 10, 18));
  EXPECT_THAT(elements((*outputs)[3]), ElementsAre(4, 5, 12));
  EXPECT_THAT(elements((*outputs)[4]), ElementsAre(0));
  EXPECT_THAT(elements((*outputs)[5]), ElementsAre(1, 2, 6));
  EXPECT_EQ((*outputs)[4].bytes(), (*outputs)[3].bytes() + (*outputs)[3].size_bytes());
  EXPECT_EQ((*outputs)[5].bytes(), (*outputs)[4].bytes() + (*outputs)[4].size_bytes());
  EXPECT_EQ((*outputs)[5].buffer(), (*outputs)[3].buffer());
}

TEST(ValueAndGrad, SumsAllOutputsWithoutAux) {
  const auto function = value_and_grad("f",
                                       [](std::span<const Value> inputs) -> Values {
                                         return {twice(inputs[0]), inputs[0]};
                                       },
                                       {.parameters = {}, .positions = {0}, .has_aux = false});
  const std::vector<Tensor> inputs{vector_of({1, 2})};
  EXPECT_THAT(elements((*function->call(inputs, "", {}))[2]), ElementsAre(3, 3));
}

TEST(ValueAndGrad, SumsAsManyOutputsAsAreLosses) {
  const auto function = value_and_grad("f",
                                       [](std::span<const Value> inputs) -> Values {
                                         return {twice(inputs[0]), inputs[0], inputs[0]};
                                       },
                                       {.positions = {0}, .losses = [] { return std::size_t{2}; }});
  const std::vector<Tensor> inputs{vector_of({1, 2})};
  EXPECT_THAT(elements((*function->call(inputs, "", {}))[3]), ElementsAre(3, 3));
}

TEST(ValueAndGrad, NamesTheOpThatHasNoGradient) {
  const ParameterPtr a = parameter("a", {1, 2});
  const auto function = value_and_grad("f",
                                       [&](std::span<const Value> inputs) -> Values {
                                         return apply("sgd", {a, inputs[0], Tensor::scalar(0.5f)});
                                       },
                                       {.parameters = {a}, .positions = {}, .has_aux = false});
  const std::vector<Tensor> inputs{vector_of({1, 2})};
  const auto failed = function->call(inputs, "", {});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, Mentions("pass", "through"));
}

TEST(ValueAndGrad, RefusesIntegersAndInputsThatAreNotThere) {
  const auto take = [](std::span<const Value> inputs) -> Values { return apply("reduce_sum", {inputs[0]}); };
  const std::vector<Tensor> inputs{vector_of({1}), Tensor::zeros(DType::int32, {1})};
  const auto integer = value_and_grad("f", take, {.parameters = {}, .positions = {1}, .has_aux = false});
  EXPECT_THAT(integer->call(inputs, "", {}).error().message, Mentions("floating", "gradients"));
  const auto missing = value_and_grad("f", take, {.parameters = {}, .positions = {2}, .has_aux = false});
  EXPECT_THAT(missing->call(inputs, "", {}).error().message, HasSubstr("input 2"));
}

TEST(Apply, RunsAtOnceOutsideATrace) {
  const Value sum = twice(vector_of({1, 2}));
  ASSERT_TRUE(sum.is_concrete());
  EXPECT_THAT(elements(sum.tensor()), ElementsAre(2, 4));
}

TEST(Apply, ThrowsWhatCannotBeComputed) {
  const Value vector = vector_of({1});
  EXPECT_THAT(ERROR_OF(twice(apply("matmul", {vector, vector}))), Mentions("matmul", "matrices"));
  EXPECT_THAT(ERROR_OF(apply("relu", {Value()})), Mentions("relu", "input 0", "value"));
  EXPECT_THAT(ERROR_OF(apply("relu", {})), Mentions("relu", "takes 1", "1 tensors", "0"));
  EXPECT_THAT(ERROR_OF(apply("no such op", {})), Mentions("named", "'no such op'"));
  EXPECT_THAT(ERROR_OF(Value().shape()), HasSubstr("has no value"));
}

}  // namespace function_test
}  // namespace
}  // namespace muster::graph
