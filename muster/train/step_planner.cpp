#include "muster/train/step_planner.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "muster/train/context.h"
#include "muster/train/explain.h"
#include "muster/train/job.h"
#include "muster/train/plan_search.h"
#include "muster/train/process.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

using graph::StepLayout;

// The workers that differ from this one on `data` alone, and on `model` alone.
Result<> make_groups(const StepLayout& layout) {
  if (layout.data == 1 || layout.model == 1) return {};
  const graph::Mesh mesh({{.name = "data", .size = layout.data}, {.name = "model", .size = layout.model}});
  for (const std::size_t axis : {0, 1}) {
    const std::vector<std::uint32_t> members = mesh.group_of(rank(), {axis});
    std::string name = "mesh";
    for (const std::uint32_t member : members) name += fmt::format(" {}", member);
    MUSTER_TRY_VOID(create_group(name, members, true));
  }
  return {};
}

Result<> begin(const StepLayout& layout) {
  set_shares_batch(true, layout.mesh_text());
  if (context().zero.level == 0)  // else the script has said it
    MUSTER_TRY_VOID(set_zero({.level = layout.zero_level, .threshold_bytes = layout.zero_threshold_bytes}));
  return make_groups(layout);
}

// What rank 0 finds; data 0 where it finds none.
StepLayout best_of(const graph::Graph& graph, std::span<const Tensor> inputs,
                   const graph::PlanOptions& options, const std::optional<CallTimes>& calls) {
  const NotedGraph noted{.graph = graph, .inputs = {inputs.begin(), inputs.end()}, .options = options};
  const FoundPlans found =
      find_plans({&noted}, {.workers = world_size(), .memory_bytes = std::nullopt, .calls = calls});
  if (found.plans.empty()) return {.data = 0};
  log::info(fmt::format("the step is divided by {}: predicted {} a step", to_string(found.plans[0].layout),
                        graph::time_text(found.plans[0].prediction->step_s())));
  return found.plans[0].layout;
}

// Calls are measured by all workers, and rank 0 decides for all.
Result<StepLayout> decided_by_all(const graph::Graph& graph, std::span<const Tensor> inputs,
                                  const graph::PlanOptions& options) {
  std::string problem;
  Session* const session = Session::current();
  if (session == nullptr)  // `muster explain` shows the first of some workers
    return best_of(graph, inputs, options, read_call_times(world_size(), problem));
  std::optional<CallTimes> calls;
  Collectives& collectives = session->collectives();
  if (session->membership().local_size() == world_size())
    MUSTER_TRY_VOID(collectives.call_all([&](Communicator& all) -> Result<> {
      MUSTER_TRY(calls, measure_calls(all));
      return {};
    }));
  std::array<std::int64_t, 3> chosen{};
  if (rank() == 0) {
    const StepLayout best = best_of(graph, inputs, options, calls);
    chosen = {best.data, best.model, best.zero_level};
  }
  MUSTER_TRY_VOID(collectives.call_all(
      [&](Communicator& all) { return all.broadcast(chosen.data(), sizeof chosen, 0); }));
  return StepLayout{.data = static_cast<std::uint32_t>(chosen[0]),
                    .model = static_cast<std::uint32_t>(chosen[1]),
                    .zero_level = chosen[2]};
}

}  // namespace

Result<> StepPlanner::decide(const graph::Graph& graph, std::span<const Tensor> inputs,
                             const graph::PlanOptions& options) {
  MUSTER_TRY(const StepLayout layout, decided_by_all(graph, inputs, options));
  if (layout.data == 0)
    return fail(
        Code::invalid_argument,
        fmt::format("parallel.plan: the step of '{}' cannot be divided over {} workers: `muster plan -n "
                    "{} SCRIPT` says why",
                    graph.name, world_size(), world_size()));
  layout_ = layout;
  return begin(layout);
}

Result<bool> StepPlanner::divide_weights(const graph::Graph& graph) {
  bool divides = false;
  const auto layouts = graph::layouts_of_weights(graph, *layout_);
  for (const auto& [id, parameter] : graph.parameters) {
    std::weak_ptr<graph::Parameter>& known = known_[parameter.get()];
    if (!known.expired()) continue;
    known = parameter;
    const auto found = layouts.find(parameter.get());
    if (found == layouts.end() || parameter->home()) continue;
    parameter->divide(graph::Parameter::Share{.layout = found->second, .rank = rank()});
    divides = true;
  }
  return divides;
}

Result<bool> StepPlanner::compiling(graph::Graph& graph, std::span<const Tensor> inputs,
                                    const graph::PlanOptions& options) {
  if (world_size() == 1 || process().planner != this) return false;
  const bool trains = NotedGraph{.graph = graph, .inputs = {}, .options = {}}.trains();
  if (!layout_) {
    if (!trains) return false;
    MUSTER_TRY_VOID(decide(graph, inputs, options));
    MUSTER_TRY_VOID(divide_weights(graph));
    return true;
  }
  MUSTER_TRY(const bool divides, divide_weights(graph));
  if (divides) return true;
  const auto samples = graph::samples_of(graph);
  const bool fits = !samples || *samples % layout_->data == 0;
  if (!fits && trains && !has_cut_)
    return fail(
        Code::invalid_argument,
        fmt::format("parallel.plan: a batch of {} samples cannot be cut into {} equal parts: choose a "
                    "batch that can, drop_remainder=True, or another plan",
                    *samples, layout_->data));
  if (!fits && trains)  // the last batch of an epoch, perhaps
    log::warning(
        fmt::format("a batch of {} samples is computed whole by each worker: it cannot be cut into {} "
                    "equal parts",
                    *samples, layout_->data));
  has_cut_ = has_cut_ || (fits && trains);
  graph::cut_samples(graph, *layout_, rank());
  return false;
}

Result<> plan_steps(std::uint32_t data, std::uint32_t model) {
  std::optional<StepLayout> layout;
  if (data > 0) layout = StepLayout{.data = data, .model = model};
  const bool ends = data == 1 && model == 1;
  process().planner = ends ? nullptr : new StepPlanner(layout);  // kept: a run may still look at it
  if (explain_mode() == ExplainMode::off && process().cost_watch.load() == nullptr)
    graph::observe_graphs(process().planner);
  if (!layout) set_shares_batch(world_size() > 1, fmt::format("data={},model=1", world_size()));
  return {};
}

}  // namespace muster::train
