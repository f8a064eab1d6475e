#include "muster/train/network_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace muster::train {
namespace {

// "Conv2d 'layer1.0.conv'" is layer1/0/conv; that of the network itself has no name.
std::string boxes_of(const graph::OriginPtr& origin) {
  if (origin == nullptr) return {};
  const std::size_t begin = origin->cell.find('\''), end = origin->cell.rfind('\'');
  if (begin == end) return {};
  std::string path = origin->cell.substr(begin + 1, end - begin - 1) + '/';
  std::ranges::replace(path, '.', '/');
  return path;
}

std::string slashed(std::string name) {
  std::ranges::replace(name, '.', '/');
  return name;
}

}  // namespace

Result<graph::Graph> trace_network(nn::Cell& cell, std::span<const graph::TensorType> types) {
  const OriginScope origins;
  const auto trace = graph::Trace::begin(cell.class_name());
  std::vector<graph::Value> inputs;
  for (const graph::TensorType& type : types) inputs.push_back(trace->input(type));
  return catch_error([&] {
    const graph::Trace::Scope scope(*trace);
    return trace->finish(cell.call(inputs));
  });
}

std::vector<telemetry::GraphNode> nodes_to_draw(const graph::Graph& graph) {
  std::vector<telemetry::GraphNode> nodes;
  std::vector<std::string> names(graph.values.size());  // by value: the node that gives it
  const auto add = [&](std::string name, std::string type, std::vector<std::string> inputs,
                       std::span<const graph::ValueId> values) {
    telemetry::GraphNode node{
        .name = fmt::format("{}/{}", graph.name, name), .type = std::move(type), .inputs = std::move(inputs)};
    for (const graph::ValueId id : values) {
      node.outputs.push_back(graph.values[id].shape);
      names[id] = node.name;
    }
    nodes.push_back(std::move(node));
  };
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    add(fmt::format("input_{}", i), "Input", {}, std::span(&graph.inputs[i], 1));
  for (const auto& [id, parameter] : graph.parameters)
    add(slashed(parameter->name()), "Parameter", {}, std::span(&id, 1));
  for (std::size_t i = 0; i < graph.captured.size(); ++i)
    add(fmt::format("constant_{}", i), "Constant", {}, std::span(&graph.captured[i].first, 1));
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const graph::Node& node = graph.nodes[i];
    std::vector<std::string> inputs;
    for (const graph::ValueId id : node.inputs) inputs.push_back(names[id]);
    add(fmt::format("{}{}_{}", boxes_of(node.origin), node.op->name, i), std::string(node.op->name),
        std::move(inputs), node.outputs);
  }
  return nodes;
}

}  // namespace muster::train
