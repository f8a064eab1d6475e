#include "muster/graph/execution/overlap.h"

#include <algorithm>

#include "muster/graph/ops/transfer.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

constexpr std::size_t send_beside_min = 256 * 1024;  // bytes

bool reads_any(const Node& node, const std::vector<ValueId>& values, const std::vector<ValueId>& roots) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    return std::find(values.begin(), values.end(), roots[id]) != values.end();
  });
}

bool is_transfer(const Node& node) { return node.op == &send_op() || node.op == &receive_op(); }

bool computes(const Node& node) { return !node.op->collective && node.op->sharing != Sharing::view; }

bool is_small_send(const Graph& graph, const Node& node) {
  std::size_t bytes = 0;
  for (const ValueId id : node.inputs) bytes += graph.values[id].size_bytes();
  return node.op == &send_op() && bytes < send_beside_min;
}

std::vector<bool> transfers_beside(const Graph& graph, const std::vector<std::size_t>& joins) {
  std::vector<bool> beside(graph.nodes.size(), false);
  bool computes_next = false;  // whether something is computed before the next transfer, or beside it
  std::size_t next_computed = graph.nodes.size();
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (computes(node)) {
      computes_next = true;
      next_computed = i;
    }
    if (!is_transfer(node)) continue;
    computes_next = computes_next && next_computed < joins[i];
    beside[i] = computes_next && !is_small_send(graph, node);
  }
  return beside;
}

}  // namespace

Overlap overlap_of(const Graph& graph) {
  const std::vector<ValueId> roots = roots_of(graph);
  Overlap made{.joins = std::vector<std::size_t>(graph.nodes.size(), 0), .any = false, .beside = {}};
  std::vector<bool> is_worth_it(graph.nodes.size(), false);
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
    is_worth_it[call] = computes && !is_transfer(graph.nodes[call]);
  }
  made.beside = transfers_beside(graph, made.joins);
  for (std::size_t i = 0; i < is_worth_it.size(); ++i) made.beside[i] = made.beside[i] || is_worth_it[i];
  return made;
}

}  // namespace muster::graph
