// How weights and samples are cut where a script has no layout.
#include "muster/graph/sharding/choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "muster/graph/graph.h"

namespace muster::graph {
namespace {
namespace choice_test {

ParameterPtr weight(const std::string& name, std::vector<std::int64_t> sizes) {
  return std::make_shared<Parameter>(name, Tensor::zeros(DType::float32, Shape(std::move(sizes))));
}

struct Net {
  std::vector<ParameterPtr> parameters;
  Graph graph;
};

// Products of x (8, 12), a relu and a bias behind each; weights are (in, out), and are read as `computed`.
Net net_of(const std::vector<std::int64_t>& widths, DType computed = DType::float32) {
  Net made;
  const auto trace = Trace::begin("net");
  Value x = trace->input({computed, Shape{8, 12}});
  const Value rate = trace->input({computed, Shape{1}});
  const Trace::Scope scope(*trace);
  const auto read = [&](const ParameterPtr& parameter) {
    if (computed == parameter->dtype()) return Value(parameter);
    return apply("cast", {Value(parameter)}, {{"dtype", computed}});
  };
  std::int64_t last = 12;
  for (const std::int64_t width : widths) {
    made.parameters.push_back(weight("w", {last, width}));
    made.parameters.push_back(weight("b", {width}));
    x = apply("matmul", {x, read(made.parameters[made.parameters.size() - 2])});
    x = apply("relu", {apply("bias_add", {x, read(made.parameters.back())})});
    last = width;
  }
  made.graph = trace->finish(Values{apply("mul", {x, rate})});
  return made;
}

// "0" by dimension that is cut, "-" for one that is whole.
std::string cuts(const Net& net, const StepLayout& layout) {
  const auto layouts = layouts_of_weights(net.graph, layout);
  std::string text;
  for (const ParameterPtr& parameter : net.parameters) {
    const auto found = layouts.find(parameter.get());
    std::string cut = "-";
    if (found != layouts.end())
      for (std::size_t dim = 0; dim < found->second.dims.size(); ++dim)
        if (!found->second.dims[dim].empty()) cut = std::to_string(dim);
    text += cut;
  }
  return text;
}

TEST(StepLayout, CutsWeightsByWhatTheyGiveAndThenByWhatTheySumUp) {
  // Of the second product the sum is whole behind an all_reduce, and so is its bias.
  EXPECT_EQ(cuts(net_of({16, 4, 8, 4}), {.data = 1, .model = 2}), "100-100-");
}

TEST(StepLayout, CutsWeightsThatAreReadInAnotherPrecision) {
  EXPECT_EQ(cuts(net_of({16, 4, 8, 4}, DType::bfloat16), {.data = 1, .model = 2}), "100-100-");
}

TEST(StepLayout, LeavesWeightsWholeThatCannotBeCut) {
  EXPECT_EQ(cuts(net_of({15, 6}), {.data = 1, .model = 2}), "--10");
  EXPECT_EQ(cuts(net_of({15, 7}), {.data = 1, .model = 2}), "----");
  EXPECT_EQ(cuts(net_of({16, 4}), {.data = 2, .model = 1}), "----");
}

TEST(StepLayout, CutsTheInputsThatHaveTheSamples) {
  Net net = net_of({16});
  const std::size_t nodes = net.graph.nodes.size();
  cut_samples(net.graph, {.data = 2, .model = 2}, 3);
  ASSERT_EQ(net.graph.nodes.size(), nodes + 1);  // not the one number
  const Node& cut = net.graph.nodes.front();
  EXPECT_EQ(cut.op->name, "shard");
  EXPECT_EQ(cut.inputs, std::vector<ValueId>{net.graph.inputs[0]});
  EXPECT_EQ(cut.attributes.get("layout", std::string()), "data;");
  EXPECT_EQ(cut.attributes.get("rank", std::int64_t{0}), 3);
  for (std::size_t i = 1; i < net.graph.nodes.size(); ++i)
    EXPECT_EQ(std::ranges::count(net.graph.nodes[i].inputs, net.graph.inputs[0]), 0);
}

TEST(StepLayout, LeavesABatchWholeThatCannotBeCut) {
  Net net = net_of({16});
  const std::size_t nodes = net.graph.nodes.size();
  cut_samples(net.graph, {.data = 3, .model = 1}, 0);
  EXPECT_EQ(net.graph.nodes.size(), nodes);
}

TEST(StepLayout, CutsTheStateByTheAxesThatDoNotCutTheParameter) {
  const auto mesh = std::make_shared<const Mesh>(std::vector<MeshAxis>{{"data", 2}, {"model", 2}});
  const ParameterPtr parameter = weight("w", {8, 6});
  EXPECT_EQ(to_string(*layout_of_state(*parameter, mesh, 0)), "(data+model, -)");
  TensorLayout columns{.mesh = mesh, .dims = {{}, {1}}};
  parameter->divide(Parameter::Share{.layout = columns});
  EXPECT_EQ(to_string(*layout_of_state(*parameter, mesh, 0)), "(data, model)");
  EXPECT_FALSE(layout_of_state(*parameter, mesh, 1 << 20));
}

TEST(StepLayout, OfLevelThreeCutsParametersAndGathersThemForEachUse) {
  Net net = net_of({16, 6});
  const StepLayout layout{.data = 2, .model = 2, .zero_level = 3, .zero_threshold_bytes = 0};
  const auto layouts = layouts_of_parameters(net.graph, layout);
  EXPECT_EQ(to_string(layouts.at(net.parameters[0].get())), "(data, model)");
  EXPECT_EQ(to_string(layouts.at(net.parameters[1].get())), "(model+data)");
  EXPECT_EQ(to_string(layouts.at(net.parameters[2].get())), "(model+data, -)");
  EXPECT_EQ(to_string(layouts.at(net.parameters[3].get())), "(data)");
  EXPECT_EQ(layouts_of_parameters(net.graph, {.data = 2, .model = 2, .zero_level = 1}).size(), 3u);
  EXPECT_EQ(layouts_of_parameters(net.graph, {.data = 2, .model = 2, .zero_level = 3}).size(), 3u)
      << "too small";

  for (const ParameterPtr& parameter : net.parameters)
    parameter->divide(Parameter::Share{.layout = layouts.at(parameter.get())});
  const std::size_t nodes = net.graph.nodes.size();
  gather_for_use(net.graph, layout, 1);
  ASSERT_EQ(net.graph.nodes.size(), nodes + 4);
  EXPECT_EQ(net.graph.nodes[0].op->name, "shard");
  EXPECT_EQ(net.graph.nodes[0].attributes.get("layout", std::string()), ";model");
  EXPECT_EQ(net.graph.nodes[1].inputs[1], net.graph.nodes[0].outputs[0]);
}

}  // namespace choice_test
}  // namespace
}  // namespace muster::graph
