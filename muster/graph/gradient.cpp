// Reverse-mode differentiation of a trace: each node's gradient rule, last node first.
#include <fmt/format.h>

#include <utility>

#include "muster/graph/trace.h"

namespace muster::graph {
namespace {

Value filled(const TensorType& type, double value) {
  return apply("fill", std::span<const Value>{},
               {{"dtype", type.dtype}, {"shape", type.shape.sizes()}, {"value", value}});
}

Result<std::vector<ValueId>> places(Trace& trace, std::span<const Value> values, std::string_view what) {
  std::vector<ValueId> ids;
  for (const Value& value : values) {
    const Value captured = trace.capture(value);
    if (!captured.defined()) return fail(Code::invalid_argument, fmt::format("{} has no value", what));
    if (captured.is_failed()) return fail(captured.error());
    if (!is_floating(captured.dtype()))
      return fail(Code::invalid_argument, fmt::format("{} is {}: only floating tensors have gradients", what,
                                                      to_string(captured.type())));
    ids.push_back(captured.place().id);
  }
  return ids;
}

// Marks what depends on `wrt` through floating values.
std::vector<bool> depending(const Graph& graph, std::span<const ValueId> wrt) {
  std::vector<bool> marked(graph.values.size(), false);
  for (const ValueId id : wrt) marked[id] = true;
  for (const Node& node : graph.nodes) {
    bool any = false;
    for (const ValueId id : node.inputs) any = any || marked[id];
    if (!any) continue;
    for (const ValueId id : node.outputs) marked[id] = is_floating(graph.values[id].dtype);
  }
  return marked;
}

}  // namespace

// The gradients known so far, by value.
struct Trace::Backward {
  Trace& trace;
  std::vector<bool> needed;
  std::vector<Value> gradients;

  // Several uses of one value add up.
  void add(ValueId id, const Value& gradient) {
    gradients[id] = gradients[id].defined() ? apply("add", {gradients[id], gradient}) : gradient;
  }

  Result<> step(std::size_t index) {
    const Node node = trace.graph_.nodes[index];  // a copy: rules append nodes
    bool reached = false;
    bool wanted = false;
    std::vector<Value> inputs, outputs, flowing;
    for (const ValueId id : node.outputs) {
      outputs.push_back(trace.at(id));
      flowing.push_back(gradients[id]);
      reached = reached || gradients[id].defined();
    }
    for (const ValueId id : node.inputs) {
      inputs.push_back(trace.at(id));
      wanted = wanted || needed[id];
    }
    if (!reached || !wanted) return {};
    if (node.op->gradient == nullptr)
      return fail(Code::not_provided, fmt::format("the gradient cannot pass through {}", node.op->name));
    const std::vector<Value> made = node.op->gradient({inputs, outputs, flowing, node.attributes});
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (made[i].is_failed()) return fail(made[i].error());
      if (made[i].defined() && needed[node.inputs[i]]) add(node.inputs[i], made[i]);
    }
    return {};
  }
};

Result<std::vector<Value>> Trace::gradient(std::span<const Value> losses, std::span<const Value> wrt) {
  const Scope scope(*this);
  MUSTER_TRY(const auto loss_ids, places(*this, losses, "a loss"));
  MUSTER_TRY(const auto wrt_ids, places(*this, wrt, "what a gradient is wanted for"));
  const std::size_t nodes = graph_.nodes.size();
  Backward backward{*this, depending(graph_, wrt_ids), {}};
  backward.gradients.resize(graph_.values.size());
  for (const ValueId id : loss_ids) backward.add(id, filled(graph_.values[id], 1.0));
  for (std::size_t index = nodes; index-- > 0;) MUSTER_TRY_VOID(backward.step(index));
  std::vector<Value> gradients;
  for (const ValueId id : wrt_ids) {
    const Value& found = backward.gradients[id];
    gradients.push_back(found.defined() ? found : filled(graph_.values[id], 0.0));
  }
  return gradients;
}

}  // namespace muster::graph
