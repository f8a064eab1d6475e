#include "muster/graph/nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

}  // namespace muster::graph
