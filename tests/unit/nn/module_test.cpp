#include "muster/nn/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/nn/nn.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Scaled : Module<Scaled> {
  Dense& fc = add<Dense>("fc", 2, 3, DenseOptions{.weight_init = ones(), .bias_init = zeros()});
  ParameterPtr scale = add_parameter("scale", Tensor::scalar(2.0F));
  Value forward(const Value& x) { return fc(x) * Value(scale); }
};

struct Halves : Module<Halves> {
  Values forward(const Value& a, const Value& b) const { return {a + b, a - b}; }
};

struct Outer : Module<Outer> {
  Scaled& inner = add<Scaled>("inner");
  CellList& list = add<CellList>("list");
  Outer() {
    list.append<Dense>(1, 1);
    list.append<ReLU>();
  }
  Value forward(const Value& x) { return inner(x); }
};

Value row() { return Tensor::from<float>(std::vector<float>{1, 2}, {1, 2}); }

TEST(Module, ComputesByItsForward) {
  Scaled module;
  const Tensor y = module(row()).read().value();
  EXPECT_THAT(y.span<float>(), ElementsAre(6, 6, 6));
}

struct Doubled : Module<Doubled> {
  Value forward(const Value& x) const { return x + x; }
  Values bprop(const Value& x, const Value& out, const Value& dout) const { return {dout * (x + out)}; }
};

struct Split : Module<Split> {
  Values forward(const Value& a, const Value& b) const { return {a + b, a - b}; }
  Values bprop(const Value&, const Value&, const Values&, const Values& gradients) const {
    return {gradients[0], gradients[1]};
  }
};

std::vector<float> gradients_of(Cell& cell, std::vector<std::size_t> positions) {
  const auto function = graph::value_and_grad(
      "cell", [&](std::span<const Value> inputs) { return cell.call(inputs); }, {.positions = positions});
  const Value x = Tensor::from<float>(std::vector<float>{1, 2}, {2});
  const Values made = (*function)(std::vector<Value>(positions.size(), x));
  std::vector<float> elements;
  for (const Value& value : std::span(made).last(positions.size())) {
    const Tensor tensor = value.read().value();
    elements.insert(elements.end(), tensor.span<float>().begin(), tensor.span<float>().end());
  }
  return elements;
}

TEST(Module, HasTheGradientOfItsBprop) {
  Doubled module;
  EXPECT_THAT(gradients_of(module, {0}), ElementsAre(3, 6));
}

TEST(Module, WithSeveralOutputsGetsAndGivesSeveralGradients) {
  Split module;
  EXPECT_THAT(gradients_of(module, {0, 1}), ElementsAre(1, 1, 1, 1));
}

TEST(Module, KnowsTheMembersThatItAddedByTheirPaths) {
  const Outer outer;
  std::vector<std::string> names;
  for (const ParameterPtr& parameter : outer.parameters()) names.push_back(parameter->name());
  EXPECT_THAT(names,
              ElementsAre("inner.scale", "inner.fc.weight", "inner.fc.bias", "list.0.weight", "list.0.bias"));
}

TEST(Module, IsNamedAfterItsType) {
  EXPECT_EQ(Scaled().class_name(), "Scaled");
  EXPECT_EQ(Outer().inner.description(), "Scaled 'inner'");
}

TEST(Module, TakesAsManyInputsAsItsForward) {
  Halves halves;
  const Value both[] = {row(), row()};
  EXPECT_EQ(halves.call(both).size(), 2U);
  EXPECT_THAT(ERROR_OF(halves.call({both, 1})), Mentions("forward()", "takes", "2 inputs", "1"));
}

struct Twice : Module<Twice> {
  ReLU& first = add<ReLU>("act");
  ParameterPtr scale = add_parameter("scale", Tensor::scalar(2.0F));
  Value forward(const Value& x) { return first(x); }
};

TEST(Module, HasOneMemberOfAName) {
  Twice module;
  EXPECT_THAT(ERROR_OF(&module.add<ReLU>("act")), Mentions("Twice", "'act'", "a name of its own"));
  EXPECT_THAT(ERROR_OF(module.add_parameter("act", Tensor::scalar(1.0F))), Mentions("'act'"));
  EXPECT_THAT(ERROR_OF(&module.add<ReLU>("scale")), Mentions("'scale'"));
}

TEST(Module, OfSeveralOutputsIsNotCalledForOne) {
  Halves halves;
  EXPECT_THAT(ERROR_OF(halves(row(), row())), Mentions("2 outputs", "take", "call()"));
}

}  // namespace
}  // namespace muster::nn
