#include "muster/nn/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/nn/nn.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::nn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

TEST(Module, OfSeveralOutputsIsNotCalledForOne) {
  Halves halves;
  EXPECT_THAT(ERROR_OF(halves(row(), row())), Mentions("2 outputs", "take", "call()"));
}

}  // namespace
}  // namespace muster::nn
