#include "muster/graph/cost/step_parts.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "muster/graph/execution/compiled_plan.h"

namespace muster::graph {
namespace {

bool makes_loss(const Graph& graph, std::span<const Node> nodes) {
  return std::ranges::any_of(nodes, [&](const Node& node) {
    return std::ranges::any_of(node.outputs,
                               [&](ValueId id) { return std::ranges::count(graph.losses, id) > 0; });
  });
}

}  // namespace

std::vector<StepPart> parts_of_plan(const RunObserver::Step& step) {
  if (step.plan == nullptr) return {};
  const auto& plan = *static_cast<const CompiledPlan*>(step.plan);
  std::size_t behind_loss = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    if (makes_loss(plan.graph, plan.nodes_of(plan.steps[i]))) behind_loss = i + 1;
  if (behind_loss == 0) return {};
  std::vector<StepPart> parts(plan.steps.size(), StepPart::forward);
  for (std::size_t i = behind_loss; i < parts.size(); ++i) {
    const Node& node = plan.graph.nodes[plan.steps[i].node];
    parts[i] = node.op->sharing == Sharing::in_place ? StepPart::update : StepPart::backward;
  }
  return parts;
}

}  // namespace muster::graph
