#include "muster/graph/cost/step_parts.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "muster/graph/execution/compiled_plan.h"

namespace muster::graph {
namespace {

// By step: whether it lies behind all losses, or uses what does, since passes make nodes of their own.
// Constants, which may be made at any time, are a part of what is made before them.
std::vector<bool> behind_losses(const CompiledPlan& plan) {
  std::vector<bool> is_behind(plan.graph.values.size(), false), is_constant(is_behind), made;
  for (const PlannedStep& step : plan.steps) {
    const std::span<const Node> nodes = plan.nodes_of(step);
    bool behind = false, constant = step.kind == PlannedStep::Kind::compute;
    for (const Node& node : nodes) {
      behind = behind || node.is_behind_losses;
      for (const ValueId id : node.inputs) {
        behind = behind || is_behind[id];
        constant = constant && is_constant[id];
      }
    }
    made.push_back(constant ? !made.empty() && made.back() : behind);
    for (const Node& node : nodes)
      for (const ValueId id : node.outputs) is_behind[id] = behind, is_constant[id] = constant;
  }
  return made;
}

}  // namespace

std::vector<StepPart> parts_of_plan(const RunObserver::Step& step) {
  if (step.plan == nullptr) return {};
  const auto& plan = *static_cast<const CompiledPlan*>(step.plan);
  const std::vector<bool> behind = behind_losses(plan);
  if (std::ranges::count(behind, true) == 0) return {};
  std::vector<StepPart> parts(plan.steps.size(), StepPart::forward);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!behind[i]) continue;
    const Node& node = plan.graph.nodes[plan.steps[i].node];
    parts[i] = node.op->sharing == Sharing::in_place ? StepPart::update : StepPart::backward;
  }
  return parts;
}

}  // namespace muster::graph
