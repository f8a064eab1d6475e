// Where nodes are placed, and values that another worker has.
#include "muster/graph/scopes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "muster/graph/graph.h"
#include "tests/unit/base/error_of.h"

namespace muster::graph {
namespace {

using ::testing::HasSubstr;

PlacementPtr on(std::uint32_t rank) {
  return std::make_shared<const Placement>(Placement{rank, "Net 'layer', net.py:7"});
}

const TensorType pair_type{DType::float32, {2}};

TEST(Placement, IsThatOfTheInnermostScope) {
  const auto trace = Trace::begin("net");
  const Value x = trace->input(pair_type);
  const PlacementPtr outer = on(1), inner = on(2);
  Value y = x;
  {
    const Trace::Scope scope(*trace);
    y = apply("relu", {y});
    const PlaceScope place(outer);
    y = apply("relu", {y});
    {
      const PlaceScope deeper(inner);
      y = apply("relu", {y});
    }
    y = apply("relu", {y});
    const PlaceScope nowhere(nullptr);
    y = apply("relu", {y});
  }
  EXPECT_EQ(current_placement(), nullptr);
  const Graph graph = trace->finish(std::array{y});
  ASSERT_EQ(graph.nodes.size(), 5u);
  EXPECT_EQ(graph.nodes[0].placement, nullptr);
  EXPECT_EQ(graph.nodes[1].placement, outer);
  EXPECT_EQ(graph.nodes[2].placement, inner);
  EXPECT_EQ(graph.nodes[3].placement, outer);
  EXPECT_EQ(graph.nodes[4].placement, nullptr);
  EXPECT_THAT(to_string(graph), HasSubstr("relu(%2) on worker 2"));
}

const std::string reason = "the gradient of 'w' is on worker 3 (Net 'layer', net.py:7)";

TEST(AnAbsentValue, IsNotRead) {
  const Value value = Tensor::absent(DType::float32, {2}, reason);
  EXPECT_EQ(value.type(), pair_type);
  ASSERT_FALSE(value.read());
  EXPECT_EQ(value.read().error().message, reason);
}

TEST(AnAbsentValue, IsNotComputedWithOpByOp) {
  EXPECT_EQ(ERROR_OF(apply("relu", {Tensor::absent(DType::float32, {2}, reason)})), reason);
}

TEST(AnAbsentValue, PassesThroughAFunctionThatDoesNotNeedIt) {
  Function second("second",
                  [](std::span<const Value> inputs) -> Values { return apply("relu", {inputs[1]}); });
  const Value absent = Tensor::absent(DType::float32, {2}, reason);
  const Value there = Tensor::zeros(DType::float32, {2});
  EXPECT_TRUE(second(std::array{absent, there})[0].is_concrete());
  EXPECT_EQ(ERROR_OF(second(std::array{there, absent})), "'second': input 1 is needed here: " + reason);
}

TEST(Gradients, AreComputedWhereTheNodeIs) {
  const auto trace = Trace::begin("net");
  const Value x = trace->input(pair_type);
  const PlacementPtr first = on(1);
  std::vector<Value> gradient;
  {
    const Trace::Scope scope(*trace);
    const PlaceScope around(on(4));
    Value y = x;
    {
      const PlaceScope place(first);
      y = apply("tanh", {y});
    }
    const PlaceScope nowhere(nullptr);
    gradient = trace->gradient(std::array{apply("relu", {y})}, std::array{x});
  }
  const Graph graph = trace->finish(gradient);
  for (const Node& node : graph.nodes) {
    const bool is_of_tanh = node.op->name.starts_with("tanh");
    EXPECT_EQ(node.placement, is_of_tanh ? first : nullptr) << node.op->name;
  }
}

TEST(AParameter, ThatAnotherWorkerHasIsNeitherMadeNorRead) {
  int made = 0;
  const auto weight =
      std::make_shared<Parameter>("w", pair_type, [&](const Tensor& out, const RandomStream&) {
        ++made;
        std::fill_n(out.data<float>(), 2, 1.f);
      });
  weight->materialize(0);
  weight->set_home({.rank = 3, .is_here = false, .reason = reason});
  EXPECT_FALSE(weight->materialized());
  EXPECT_EQ(Value(weight).read().error().message, reason);
  EXPECT_EQ(ERROR_OF(apply("relu", {weight})), reason);
  ASSERT_TRUE(weight->set(Tensor::zeros(DType::float32, {2})));
  EXPECT_FALSE(weight->materialized());
  Function function("f", [&](std::span<const Value>) -> Values { return apply("relu", {weight}); });
  EXPECT_EQ(ERROR_OF(function({})), "'f': " + reason);
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace muster::graph
