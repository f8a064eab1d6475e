// Updates of many parameters as one pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/graph/kernel.h"
#include "muster/graph/plan.h"

namespace muster::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The update of an optimizer, as its row describes it, with arguments that make it keep all its states, or
// those alone that it always has.
struct Row {
  std::string op;
  const OptimizerSchema* schema = nullptr;
  bool keeps_all = false;
  Attributes attributes = {};
};

const OptimizerState* state_named(const OptimizerSchema& schema, std::string_view name) {
  for (const OptimizerState& state : schema.states)
    if (state.name == name) return &state;
  return nullptr;
}

bool is_kept_with(const OptimizerSchema& schema, std::string_view argument) {
  return std::any_of(schema.states.begin(), schema.states.end(),
                     [argument](const OptimizerState& state) { return state.kept_with == argument; });
}

Attributes attributes_of(const OptimizerSchema& schema, bool keeps_all) {
  Attributes made{{"weight_decay", 0.1}, {"loss_scale", 4.0}};
  for (const Argument& argument : schema.arguments) {
    if (argument.name == "learning_rate" || made.find(argument.name) != nullptr) continue;
    const bool is_truth = std::holds_alternative<bool>(argument.otherwise);
    if (is_kept_with(schema, argument.name) && !is_truth)
      made.set(argument.name, keeps_all ? 0.9 : 0.0);
    else
      made.set(argument.name, is_truth && keeps_all ? Attribute(true) : argument.otherwise);
  }
  return made;
}

std::vector<Row> rows() {
  std::vector<Row> made;
  for (const Op* op : ops()) {
    if (!op->optimizer.exists()) continue;
    for (const bool keeps_all : {false, true})
      made.push_back(
          {std::string(op->name), &op->optimizer, keeps_all, attributes_of(op->optimizer, keeps_all)});
  }
  return made;
}

// Sizes of parameters: none, one, a vector and a bit, and more than a thread takes for itself.
const std::vector<std::int64_t> sizes{0, 1, 37, 200'001, 16, 70'000};

template <class T>
ParameterPtr parameter_of(std::int64_t size, std::uint64_t stream) {
  Tensor made(dtype_of<T>, {size});
  const RandomStream numbers(7, stream);
  for (std::int64_t i = 0; i < size; ++i)
    made.data<T>()[i] = static_cast<T>(0.5 + numbers.uniform(static_cast<std::uint64_t>(i)));
  return std::make_shared<Parameter>("p", made);
}

// What the update reads as `name`, for a parameter of `size`.
template <class T>
Value input_of(const OptimizerSchema& schema, std::string_view name, std::int64_t size,
               std::uint64_t stream) {
  const OptimizerState* state = state_named(schema, name);
  if (state == nullptr)
    return std::make_shared<Parameter>("steps", Tensor::scalar(std::int32_t{2}).reshaped({1}));
  if (state->is_scalar) return std::make_shared<Parameter>("flag", Tensor::scalar(1.0F));
  return parameter_of<T>(size, stream);
}

// The inputs of one update each, with parameters of their own.
template <class T>
std::vector<std::vector<Value>> inputs_of(const Row& row) {
  std::vector<std::string_view> names = row.schema->inputs;
  if (names.empty())
    for (const OptimizerState& state : row.schema->states) names.push_back(state.name);
  std::vector<std::vector<Value>> all;
  std::uint64_t stream = 0;
  for (const std::int64_t size : sizes) {
    std::vector<Value> inputs{parameter_of<T>(size, ++stream), parameter_of<T>(size, ++stream),
                              Tensor::scalar(0.125F)};
    for (const std::string_view name : names) {
      const OptimizerState* state = state_named(*row.schema, name);
      if (state == nullptr || state->kept_with.empty() || row.keeps_all)
        inputs.push_back(input_of<T>(*row.schema, name, size, ++stream));
    }
    all.push_back(std::move(inputs));
  }
  return all;
}

void expect_equal_parameters(const std::vector<Value>& found, const std::vector<Value>& expected) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].is_parameter()) continue;
    const Tensor& a = found[i].parameter()->storage();
    const Tensor& b = expected[i].parameter()->storage();
    EXPECT_EQ(std::memcmp(a.bytes(), b.bytes(), a.size_bytes()), 0)
        << "input " << i << " of " << a.elements() << " elements";
  }
}

template <class T>
void expect_bits_of_each_alone(const Row& row, int threads) {
  const auto alone = inputs_of<T>(row);
  const auto together = inputs_of<T>(row);
  Function step("step", [&](std::span<const Value>) -> Values {
    for (const auto& inputs : together) apply(row.op, inputs, row.attributes);
    return {};
  });
  for (int i = 0; i < 2; ++i) {
    for (const auto& inputs : alone) apply(row.op, inputs, row.attributes, {.threads = 1});
    const auto done = step.call({}, {}, {.threads = threads});
    ASSERT_TRUE(done) << done.error().message;
  }
  EXPECT_THAT(step.plan()->to_string(), HasSubstr(row.op + " [reference], 6 together"));
  for (std::size_t i = 0; i < alone.size(); ++i) expect_equal_parameters(together[i], alone[i]);
}

// Those that work in parts.
bool can_be_joined(const Row& row) { return find_op(row.op)->kernels.back().run_part != nullptr; }

TEST(Updates, TogetherGiveTheBitsOfEachAlone) {
  for (const Row& row : rows())
    for (const int threads : {1, 2, 5}) {
      if (!can_be_joined(row)) continue;
      SCOPED_TRACE(::testing::Message()
                   << row.op << (row.keeps_all ? " with all states on " : " on ") << threads);
      expect_bits_of_each_alone<float>(row, threads);
      expect_bits_of_each_alone<double>(row, threads);
    }
}

TEST(Updates, GiveTheSameBitsOnAnyNumberOfThreads) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.op);
    const auto alone = inputs_of<float>(row);
    const auto shared = inputs_of<float>(row);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      apply(row.op, alone[i], row.attributes, {.threads = 1});
      apply(row.op, shared[i], row.attributes, {.threads = 5});
      expect_equal_parameters(shared[i], alone[i]);
    }
  }
}

ParameterPtr one(float value) { return std::make_shared<Parameter>("p", Tensor::scalar(value)); }
float value_of(const Tensor& tensor) { return *tensor.data<float>(); }

TEST(Updates, WaitForEachOtherAcrossWhatDoesNotTouchThem) {
  const ParameterPtr a = one(1), b = one(2);
  const Value rate = Tensor::scalar(1.0F);
  Function step("step", [&](std::span<const Value> in) -> Values {
    (void)apply("sgd", {a, in[0], rate});
    const Value between = apply("mul", {in[0], in[0]});
    (void)apply("sgd", {b, between, rate});
    return between;
  });
  const std::vector<Tensor> three{Tensor::scalar(3.0F)};
  ASSERT_TRUE(step.call(three, {}, {}));
  EXPECT_THAT(step.plan()->to_string(), HasSubstr("sgd [reference], 2 together"));
  EXPECT_EQ(value_of(a->storage()), 1 - 3);
  EXPECT_EQ(value_of(b->storage()), 2 - 9);
}

TEST(Updates, AreDoneBeforeSomebodyReadsTheParameter) {
  const ParameterPtr a = one(1), b = one(2);
  const Value rate = Tensor::scalar(1.0F);
  Function step("step", [&](std::span<const Value> in) -> Values {
    (void)apply("sgd", {a, in[0], rate});
    const Value updated = apply("add", {a, in[0]});
    (void)apply("sgd", {b, in[0], rate});
    return {updated, apply("add", {apply("reshape", {b}, {{"shape", std::vector<std::int64_t>{1}}}), in[0]})};
  });
  const std::vector<Tensor> three{Tensor::scalar(3.0F)};
  const auto outputs = step.call(three, {}, {});
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_EQ(value_of((*outputs)[0]), 1 - 3 + 3);
  EXPECT_EQ(value_of((*outputs)[1]), 2 - 3 + 3);
}

TEST(Updates, AreDoneBeforeWhatTheyReadIsWritten) {
  const ParameterPtr a = one(1), gradient = one(3);
  Function step("step", [&](std::span<const Value> in) -> Values {
    (void)apply("sgd", {a, gradient, Tensor::scalar(1.0F)});
    (void)apply("assign", {gradient, in[0]});
    return {};
  });
  const std::vector<Tensor> hundred{Tensor::scalar(100.0F)};
  ASSERT_TRUE(step.call(hundred, {}, {}));
  EXPECT_EQ(value_of(a->storage()), 1 - 3);
  EXPECT_EQ(value_of(gradient->storage()), 100);
}

// Parameter, mean and mean square of one adam_weight_decay of a drawn gradient.
struct Clipped {
  ParameterPtr parameter = parameter_of<float>(1'000, 1);
  ParameterPtr mean = parameter_of<float>(1'000, 2), square = parameter_of<float>(1'000, 3);
  std::vector<Value> more = {};  // the decay, where it changes

  Value update(const Value& gradient, const Value& scale, bool scale_first) const {
    const Value scaled = scale_first ? apply("mul", {scale, gradient}) : apply("mul", {gradient, scale});
    std::vector<Value> inputs{parameter, scaled, Tensor::scalar(0.125F), mean, square};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return apply("adam_weight_decay", inputs, {{"weight_decay", 0.1}});
  }
  std::vector<Value> all() const { return {parameter, mean, square}; }
};

TEST(Updates, MultiplyTheirGradientsThemselvesWithTheBitsOfAProduct) {
  for (const bool scale_first : {false, true})
    for (const bool decay_changes : {false, true}) {
      const std::vector<Value> more =
          decay_changes ? std::vector<Value>{Tensor::scalar(0.3F)} : std::vector<Value>{};
      const Clipped fused{.more = more}, alone{.more = more};
      const std::vector<Tensor> inputs{parameter_of<float>(1'000, 4)->storage(), Tensor::scalar(0.7F)};
      Function step("step", [&](std::span<const Value> in) -> Values {
        (void)fused.update(in[0], in[1], scale_first);
        return {};
      });
      ASSERT_TRUE(step.call(inputs, {}, {}));
      (void)alone.update(inputs[0], inputs[1], scale_first);
      EXPECT_THAT(step.plan()->to_string(), Not(HasSubstr("mul")));
      expect_equal_parameters(fused.all(), alone.all());
    }
}

TEST(Updates, LeaveAProductOfWhatChangesBeforeThem) {
  const Clipped clipped, alone;
  const ParameterPtr gradient = parameter_of<float>(1'000, 4);
  const Tensor before = gradient->storage().clone();
  Function step("step", [&](std::span<const Value> in) -> Values {
    const Value scaled = apply("mul", {gradient, in[0]});
    (void)apply("assign", {gradient, apply("add", {gradient, gradient})});
    (void)apply("adam_weight_decay",
                {clipped.parameter, scaled, Tensor::scalar(0.125F), clipped.mean, clipped.square},
                {{"weight_decay", 0.1}});
    return {};
  });
  const std::vector<Tensor> scale{Tensor::scalar(0.7F)};
  ASSERT_TRUE(step.call(scale, {}, {}));
  (void)alone.update(before, scale[0], false);
  EXPECT_THAT(step.plan()->to_string(), HasSubstr("mul"));
  expect_equal_parameters(clipped.all(), alone.all());
}

TEST(Updates, OfOneParameterFollowEachOther) {
  const ParameterPtr a = one(1);
  Function step("step", [&](std::span<const Value>) -> Values {
    for (int i = 0; i < 2; ++i) (void)apply("sgd", {a, a, Tensor::scalar(0.5F)});
    return {};
  });
  ASSERT_TRUE(step.call({}, {}, {}));
  EXPECT_EQ(value_of(a->storage()), 0.25F);
}

}  // namespace
}  // namespace muster::graph
