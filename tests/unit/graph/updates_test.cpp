// Updates of many parameters as one pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "muster/graph/graph.h"

namespace muster::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// An optimizer's row: what it updates beside the parameter, and its settings.
struct Row {
  std::string op;
  std::size_t states = 0;  // like the parameter
  Attributes attributes = {};
  bool has_flag = false;   // a float that says whether this is the first step
  bool has_steps = false;  // an int32, between the second state and the third
};

std::vector<Row> rows() {
  return {{.op = "sgd", .attributes = {{"weight_decay", 0.1}}},
          {.op = "sgd", .states = 1, .attributes = {{"momentum", 0.9}, {"dampening", 0.2}}, .has_flag = true},
          {.op = "momentum", .states = 1, .attributes = {{"momentum", 0.9}, {"nesterov", true}}},
          {.op = "adam", .states = 2, .has_steps = true},
          {.op = "adam", .states = 3, .attributes = {{"nesterov", true}}, .has_steps = true},
          {.op = "adam_weight_decay", .states = 2, .attributes = {{"weight_decay", 0.01}}},
          {.op = "rms_prop", .states = 2, .attributes = {{"momentum", 0.5}}},
          {.op = "rms_prop", .states = 3},
          {.op = "adagrad", .states = 1, .attributes = {{"loss_scale", 4.0}}}};
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

// The inputs of one update each, with parameters of their own.
template <class T>
std::vector<std::vector<Value>> inputs_of(const Row& row) {
  std::vector<std::vector<Value>> all;
  const Value steps = std::make_shared<Parameter>("steps", Tensor::scalar(std::int32_t{2}).reshaped({1}));
  std::uint64_t stream = 0;
  for (const std::int64_t size : sizes) {
    std::vector<Value> inputs{parameter_of<T>(size, ++stream), parameter_of<T>(size, ++stream),
                              Tensor::scalar(0.125F)};
    for (std::size_t state = 0; state < row.states; ++state) {
      if (state == 2 && row.has_steps) inputs.push_back(steps);
      inputs.emplace_back(parameter_of<T>(size, ++stream));
    }
    if (row.states == 2 && row.has_steps) inputs.push_back(steps);
    if (row.has_flag) inputs.emplace_back(std::make_shared<Parameter>("flag", Tensor::scalar(1.0F)));
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

TEST(Updates, TogetherGiveTheBitsOfEachAlone) {
  for (const Row& row : rows())
    for (const int threads : {1, 2, 5}) {
      SCOPED_TRACE(testing::Message() << row.op << " with " << row.states << " states on " << threads);
      expect_bits_of_each_alone<float>(row, threads);
      expect_bits_of_each_alone<double>(row, threads);
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
