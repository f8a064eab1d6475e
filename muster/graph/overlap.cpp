#include "muster/graph/overlap.h"

#include <algorithm>

#include "muster/graph/uses.h"

namespace muster::graph {
namespace {

bool reads_any(const Node& node, const std::vector<ValueId>& values, const std::vector<ValueId>& roots) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    return std::find(values.begin(), values.end(), roots[id]) != values.end();
  });
}

}  // namespace

Overlap overlap_of(const Graph& graph) {
  const std::vector<ValueId> roots = roots_of(graph);
  Overlap made{.joins = std::vector<std::size_t>(graph.nodes.size(), 0)};
  for (std::size_t call = 0; call < graph.nodes.size(); ++call) {
    if (!graph.nodes[call].op->collective) continue;
    const std::vector<ValueId>& results = graph.nodes[call].outputs;  // not views, so their own roots
    bool computes = false;
    std::size_t next = call + 1;
    for (; next < graph.nodes.size(); ++next) {
      const Node& node = graph.nodes[next];
      if (node.op->sharing == Sharing::view) continue;
      if (reads_any(node, results, roots) || (node.op->has_effect() && !node.op->collective)) break;
      computes = computes || !node.op->collective;
    }
    made.joins[call] = next;
    made.any = made.any || computes;
  }
  return made;
}

}  // namespace muster::graph
