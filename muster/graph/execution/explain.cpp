#include "muster/graph/execution/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <sstream>

#include "muster/graph/execution/updates.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

// What `node` computes, reads and writes, added to `step`.
void add_work(const CompiledPlan& plan, const Node& node, PlanStep& step) {
  std::vector<TensorType> types;
  for (const auto* ids : {&node.inputs, &node.outputs})
    for (const ValueId id : *ids) {
      types.push_back(plan.graph.values[id]);
      step.bytes += size_bytes(plan.graph.values[id], plan.formats[id]);
    }
  const std::span<const TensorType> all = types;
  if (node.op->flops != nullptr)
    step.flops += node.op->flops({.inputs = all.first(node.inputs.size()),
                                  .outputs = all.subspan(node.inputs.size()),
                                  .attributes = node.attributes});
}

// Of the first output; empty: it lies plainly, or there is none.
std::string format_of(const CompiledPlan& plan, const Node& node) {
  if (node.outputs.empty()) return {};
  const FormatPtr& format = plan.formats[node.outputs[0]];
  return format == nullptr ? std::string() : format->name();
}

PlanStep explain_step(const CompiledPlan& plan, const PlannedStep& step) {
  const Node& first = plan.graph.nodes[step.node];
  PlanStep made{.op = first.op->name, .kernel = step.kernel, .result = {}, .format = format_of(plan, first)};
  for (const Node& node : plan.nodes_of(step)) add_work(plan, node, made);
  if (step.nodes > 1)
    made.result = fmt::format("{} parameters", step.nodes);
  else if (!first.outputs.empty())
    made.result = to_string(plan.graph.values[first.outputs[0]]);
  return made;
}

}  // namespace

namespace {

std::vector<CallsOfKind> calls_of(const Graph& graph) {
  std::vector<CallsOfKind> made;
  for (const Node& node : graph.nodes) {
    if (!node.op->collective) continue;
    const std::int64_t ranks = node.attributes.get("ranks", std::int64_t{0});
    const auto is_alike = [&](const CallsOfKind& each) {
      return each.op == node.op->name && each.ranks == ranks;
    };
    auto found = std::ranges::find_if(made, is_alike);
    if (found == made.end()) found = made.insert(found, {.op = node.op->name, .ranks = ranks});
    ++found->calls;
    found->bytes += bytes_of(graph, node.inputs);
  }
  return made;
}

// The axes on which the ranks of a call differ: of its group's name, or all.
std::vector<std::size_t> axes_of_call(const Mesh& mesh, const Attributes& attributes) {
  std::istringstream group(attributes.get("group", std::string()));
  std::string word;
  group >> word;
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; group >> rank;) ranks.push_back(rank);
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    const bool differ = std::ranges::any_of(ranks, [&](std::uint32_t rank) {
      return mesh.coordinate(rank, axis) != mesh.coordinate(ranks.front(), axis);
    });
    if (ranks.empty() || differ) axes.push_back(axis);
  }
  return axes;
}

std::size_t sent_by_call(const Mesh& mesh, const MeshPlan::Calls& calls, std::size_t given_bytes) {
  std::int64_t ranks = 1;
  for (const std::size_t axis : calls.axes) ranks *= mesh.axes()[axis].size;
  return CallsOfKind{.op = calls.op, .ranks = ranks, .calls = 1, .bytes = given_bytes}.sent_bytes();
}

void add_calls(const Graph& graph, MeshPlan& plan) {
  for (const Node& node : graph.nodes) {
    if (!node.op->collective) continue;
    MeshPlan::Calls call{.op = node.op->name, .axes = axes_of_call(*plan.mesh, node.attributes), .calls = 1};
    call.sent_bytes = sent_by_call(*plan.mesh, call, bytes_of(graph, node.inputs));
    const auto found = std::ranges::find_if(
        plan.calls, [&](const auto& each) { return each.op == call.op && each.axes == call.axes; });
    if (found == plan.calls.end()) {
      plan.calls.push_back(std::move(call));
      continue;
    }
    ++found->calls;
    found->sent_bytes += call.sent_bytes;
  }
}

// Over the mesh of its ops, or where only updates are divided, over that of a parameter's pieces.
MeshPlan mesh_plan(const CompiledPlan& plan) {
  MeshPlan made{.name = plan.graph.name, .mesh = plan.graph.divided ? plan.graph.divided->axes : nullptr};
  for (const PlannedParameter& each : plan.parameters) {
    const auto& share = each.parameter->share();
    if (share && made.mesh == nullptr) made.mesh = share->layout.mesh;
  }
  if (made.mesh == nullptr) return made;
  for (const PlannedParameter& each : plan.parameters) {
    const Parameter& parameter = *each.parameter;
    const TensorLayout whole{.mesh = made.mesh,
                             .dims = std::vector<TensorLayout::Axes>(parameter.shape().rank())};
    made.parameters.push_back(
        {parameter.name(), parameter.type(), parameter.share() ? parameter.share()->layout : whole});
  }
  add_calls(plan.graph, made);
  return made;
}

TrainingMemory training_memory(const Graph& graph) {
  TrainingMemory made;
  for (const Node& node : graph.nodes) {
    if (!is_update(*node.op) || node.inputs.size() < 2) continue;
    made.gradients_bytes += graph.values[node.inputs[1]].size_bytes();
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.op->writes(i))
        (i == 0 ? made.updated_bytes : made.states_bytes) += graph.values[node.inputs[i]].size_bytes();
  }
  return made;
}

}  // namespace

Explanation explain(const CompiledPlan& plan) {
  Explanation made{.name = plan.graph.name,
                   .inputs = {},
                   .threads = plan.threads,
                   .arena_bytes = plan.layout.arena_bytes,
                   .buckets_bytes = plan.layout.buckets_bytes};
  for (const ValueId id : plan.graph.inputs) {
    const TensorType& type = plan.graph.values[id];
    made.inputs += (made.inputs.empty() ? "" : ", ") + to_string(type);
    made.inputs_bytes += type.size_bytes();
  }
  for (const auto& [id, tensor] : plan.graph.captured) made.inputs_bytes += tensor.size_bytes();
  for (const std::size_t bytes : plan.layout.buffers_bytes) made.outputs_bytes += bytes;
  for (const PlannedStep& step : plan.steps) made.steps.push_back(explain_step(plan, step));
  for (const PlannedParameter& each : plan.parameters)
    made.parameters.emplace_back(each.parameter->name(), each.parameter->held_type());
  if (plan.graph.divided != nullptr) made.divided = *plan.graph.divided;
  made.mesh = mesh_plan(plan);
  made.calls = calls_of(plan.graph);
  made.training = training_memory(plan.graph);
  if (plan.stage.partition) made.partition = *plan.stage.partition;
  return made;
}

std::string text_of(const CompiledPlan& plan, const PlannedStep& step) {
  const Node& node = plan.graph.nodes[step.node];
  std::string text = fmt::format("{} [{}]", node.op->name, step.kernel);
  if (const std::string format = format_of(plan, node); !format.empty()) text += " -> " + format;
  if (step.nodes > 1) text += fmt::format(", {} together", step.nodes);
  return text;
}

namespace {

constexpr std::size_t held_shown_max = 5;

// The largest first.
std::vector<RunObserver::Description::Held> values_during(const Graph& graph, const PlannedStep& step) {
  const std::vector<ValueId> roots = roots_of(graph);
  constexpr auto nowhere = static_cast<std::size_t>(-1);
  std::vector<std::size_t> maker(graph.values.size(), nowhere), last(graph.values.size(), 0);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : graph.nodes[i].inputs) last[roots[id]] = i;
    for (const ValueId id : graph.nodes[i].outputs) {
      if (roots[id] == id) maker[id] = i;
      last[roots[id]] = i;
    }
  }
  for (const ValueId id : graph.outputs) last[roots[id]] = graph.nodes.size();
  std::vector<RunObserver::Description::Held> held;
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    if (maker[id] == nowhere || maker[id] >= step.node + step.nodes || last[id] < step.node) continue;
    held.push_back({fmt::format("{} {}", graph.nodes[maker[id]].op->name, to_string(graph.values[id])),
                    graph.values[id].size_bytes()});
  }
  std::ranges::stable_sort(held, std::greater{}, &RunObserver::Description::Held::bytes);
  return held;
}

}  // namespace

RunObserver::Description describe(const CompiledPlan& plan, const PlannedStep& step) {
  const PlanStep does = explain_step(plan, step);
  RunObserver::Description described{.text = text_of(plan, step), .flops = does.flops, .bytes = does.bytes};
  for (const auto& [id, parameter] : plan.graph.parameters)
    described.parameters_bytes += parameter->held_type().size_bytes();
  described.held = values_during(plan.graph, step);
  for (const auto& held : described.held) described.held_bytes += held.bytes;
  described.held.resize(std::min(described.held.size(), held_shown_max));
  return described;
}

std::string to_string(const CompiledPlan& plan) {
  std::string text = fmt::format("plan {}: {} bytes of arena\n", plan.graph.name, plan.layout.arena_bytes);
  for (const PlannedStep& step : plan.steps) text += fmt::format("  {}\n", text_of(plan, step));
  for (const OutputCopy& copy : plan.layout.copies)
    text += fmt::format("  copy {} bytes\n", plan.graph.values[copy.value].size_bytes());
  return text;
}

}  // namespace muster::graph
