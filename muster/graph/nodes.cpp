#include "muster/graph/nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace muster::graph {

std::string to_string(const Graph& graph) {
  const auto name = [](ValueId id) { return fmt::format("%{}", id); };
  const auto list = [&](const std::vector<ValueId>& ids) {
    std::string text;
    for (const ValueId id : ids) text += (text.empty() ? "" : ", ") + name(id);
    return text;
  };
  std::string text = fmt::format("graph {}\n", graph.name);
  for (const ValueId id : graph.inputs)
    text += fmt::format("  {} {} = input\n", name(id), to_string(graph.values[id]));
  for (const auto& [id, tensor] : graph.captured)
    text += fmt::format("  {} {} = captured\n", name(id), to_string(graph.values[id]));
  for (const auto& [id, parameter] : graph.parameters)
    text +=
        fmt::format("  {} {} = parameter '{}'\n", name(id), to_string(graph.values[id]), parameter->name());
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.outputs)
      text += fmt::format("  {} {}{}", name(id), to_string(graph.values[id]),
                          id == node.outputs.back() ? "" : ",");
    text += fmt::format(" = {}({}){}", node.op->name, list(node.inputs), to_string(node.attributes));
    if (node.placement != nullptr) text += fmt::format(" on worker {}", node.placement->rank);
    text += "\n";
  }
  return text + fmt::format("  return {}\n", list(graph.outputs));
}

void note_losses(Graph& graph) {
  const auto makes_loss = [&](const Node& node) {
    return std::ranges::any_of(node.outputs,
                               [&](ValueId id) { return std::ranges::count(graph.losses, id) > 0; });
  };
  const auto last = std::find_if(graph.nodes.rbegin(), graph.nodes.rend(), makes_loss);
  if (last == graph.nodes.rend()) return;
  for (auto node = graph.nodes.rbegin(); node != last; ++node) node->is_behind_losses = true;
}

}  // namespace muster::graph
