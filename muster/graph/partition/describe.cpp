#include "muster/graph/partition/describe.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/graph/kernel.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

const Node* maker_of(const Graph& graph, ValueId id) {
  for (const Node& node : graph.nodes)
    if (std::find(node.outputs.begin(), node.outputs.end(), id) != node.outputs.end()) return &node;
  return nullptr;
}

double flops_of(const Graph& graph, const Node& node) {
  if (node.op->flops == nullptr) return 0;
  std::vector<TensorType> types;
  for (const auto* ids : {&node.inputs, &node.outputs})
    for (const ValueId id : *ids) types.push_back(graph.values[id]);
  const std::span<const TensorType> all = types;
  return node.op->flops({.inputs = all.first(node.inputs.size()),
                         .outputs = all.subspan(node.inputs.size()),
                         .attributes = node.attributes});
}

void add_node(const Graph& graph, const Node& node, Stage& part) {
  ++part.nodes;
  part.flops += flops_of(graph, node);
  if (node.op->sharing != Sharing::view && node.op->sharing != Sharing::in_place)
    for (const ValueId id : node.outputs) part.activations_bytes += graph.values[id].size_bytes();
  if (node.placement == nullptr || node.placement->origin.empty()) return;
  const std::string& origin = node.placement->origin;
  if (std::find(part.placed.begin(), part.placed.end(), origin) == part.placed.end())
    part.placed.push_back(origin);
}

// A `shard` knows the rank that it is for, in which alone the graphs of workers differ.
Graph for_any_rank(Graph graph) {
  for (Node& node : graph.nodes) {
    if (node.op->name != "shard") continue;
    Attributes kept;
    for (const auto& [name, value] : node.attributes.entries())
      if (name != "rank") kept.set(name, value);
    node.attributes = std::move(kept);
  }
  return graph;
}

// Of all that the division follows from.
std::uint64_t fingerprint_of(const Graph& graph, const Places& places, std::uint32_t size) {
  std::uint64_t hash = hash_text(to_string(for_any_rank(graph)), size);
  for (const OutputNote& note : graph.notes) hash = hash_text(note.everywhere ? "everywhere" : "here", hash);
  for (const std::uint32_t rank : places.values) hash = hash_bytes(&rank, sizeof rank, hash);
  return hash;
}

}  // namespace

std::string name_of(const Graph& graph, ValueId id) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    if (graph.inputs[i] == id) return fmt::format("input {}", i);
  for (const auto& [parameter_id, parameter] : graph.parameters)
    if (parameter_id == id) return fmt::format("parameter '{}'", parameter->name());
  const Node* maker = maker_of(graph, id);
  if (maker == nullptr) return fmt::format("%{} (a tensor that the code holds)", id);
  if (maker->placement == nullptr || maker->placement->origin.empty())
    return fmt::format("%{} ({})", id, maker->op->name);
  return fmt::format("%{} of {}", id, maker->placement->origin);
}

Tensor absent_output(const Graph& graph, std::size_t index, std::uint32_t home, std::uint32_t rank) {
  const ValueId id = graph.outputs[index];
  const std::string& given = index < graph.notes.size() ? graph.notes[index].name : std::string();
  const std::string name = given.empty() ? fmt::format("output {} of '{}'", index, graph.name) : given;
  const Node* maker = maker_of(graph, id);
  const bool has_origin =
      maker != nullptr && maker->placement != nullptr && !maker->placement->origin.empty();
  const TensorType& type = graph.values[id];
  Tensor made = Tensor::absent(
      type.dtype, type.shape,
      fmt::format(
          "{} is on worker {}{}, and this is worker {}: look at it there, or hand it on to what needs "
          "it there, as an optimizer does",
          name, home, has_origin ? fmt::format(" ({})", maker->placement->origin) : "", rank));
  made.set_home(home);
  return made;
}

std::string absent_parameter(const Parameter& parameter, std::uint32_t home, const std::string& origin,
                             std::uint32_t rank) {
  return fmt::format(
      "parameter '{}' is on worker {}{}, and this is worker {}: look at it there, or let all "
      "workers call gather_parameters() first",
      parameter.name(), home, origin.empty() ? "" : fmt::format(" ({})", origin), rank);
}

Partition describe(const Graph& graph, const Places& places, const Schedule& schedule, std::uint32_t size) {
  Partition made{.name = graph.name, .reader = places.reader};
  for (std::uint32_t rank = 0; rank < size; ++rank) made.stages.push_back({.rank = rank});
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (places.nodes[i] != everywhere) add_node(graph, graph.nodes[i], made.stages[places.nodes[i]]);
  for (const auto& [id, parameter] : graph.parameters) {
    if (places.values[id] == everywhere) continue;
    Stage& part = made.stages[places.values[id]];
    part.parameters.push_back(parameter->name());
    part.parameters_bytes += parameter->type().size_bytes();
  }
  for (const Transfer& transfer : schedule.transfers)
    made.value_transfers.push_back({.from = transfer.from,
                                    .to = transfer.to,
                                    .what = name_of(graph, transfer.value),
                                    .type = graph.values[transfer.value],
                                    .message = transfer.message});
  made.fingerprint = fingerprint_of(graph, places, size);
  return made;
}

}  // namespace muster::graph
