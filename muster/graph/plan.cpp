#include "muster/graph/plan.h"

#include <utility>

#include "muster/graph/execution/explain.h"
#include "muster/graph/execution/runner.h"

namespace muster::graph {

struct Plan::State {
  State(CompiledPlan made, std::shared_ptr<Arenas> arenas)
      : compiled(std::move(made)), runner(compiled, std::move(arenas)) {}

  const CompiledPlan compiled;
  Runner runner;
};

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::~Plan() = default;

Result<std::unique_ptr<Plan>> Plan::compile(const Graph& graph, const PlanOptions& options) {
  MUSTER_TRY(CompiledPlan compiled, graph::compile(graph, options));
  return std::unique_ptr<Plan>(new Plan(std::make_unique<State>(std::move(compiled), options.arenas)));
}

Result<std::vector<Tensor>> Plan::run(std::span<const Tensor> inputs, const RunContext& context) {
  return state_->runner.run(inputs, context);
}

std::size_t Plan::arena_bytes() const { return state_->compiled.layout.arena_bytes; }

const Partition* Plan::partition() const {
  const std::optional<Partition>& partition = state_->compiled.stage.partition;
  return partition ? &*partition : nullptr;
}

bool Plan::is_valid() const { return state_->compiled.stage.is_valid(); }
Explanation Plan::explain() const { return graph::explain(state_->compiled); }
std::string Plan::to_string() const { return graph::to_string(state_->compiled); }

}  // namespace muster::graph
