#include "muster/train/step_planner.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "muster/train/context.h"
#include "muster/train/explain.h"
#include "muster/train/job.h"
#include "muster/train/plan_search.h"
#include "muster/train/process.h"
#include "muster/train/session.h"
#include "muster/train/shared_inputs.h"

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

// What rank 0 finds, as it tells the others.
struct Choice {
  std::uint32_t data = 0;  // 0: none
  std::uint32_t model = 1;
  std::int64_t zero_level = 0;
  // Of the plan that needs least memory, where none is found that needs little enough; 0: not for memory.
  std::uint64_t least_bytes = 0;

  StepLayout smallest(std::uint32_t workers) const {
    return {.data = workers / model, .model = model, .zero_level = zero_level};
  }
  StepLayout layout() const { return {.data = data, .model = model, .zero_level = zero_level}; }
};

Choice best_of(const NotedGraph& noted, const SearchOptions& options) {
  const FoundPlans found = find_plans({&noted}, options);
  if (found.plans.empty()) {
    const StepPlan* const smallest = smallest_dropped(found);
    if (smallest == nullptr) return {};
    return {.data = 0,
            .model = smallest->layout.model,
            .zero_level = smallest->layout.zero_level,
            .least_bytes = smallest->prediction->peak_bytes};
  }
  log::info(fmt::format("the step is divided by {}: predicted {} a step", to_string(found.plans[0].layout),
                        graph::time_text(found.plans[0].prediction->step_s())));
  const StepLayout& best = found.plans[0].layout;
  return {.data = best.data, .model = best.model, .zero_level = best.zero_level};
}

// Calls are measured by all workers, and rank 0 decides for all.
Result<Choice> decided_by_all(const NotedGraph& noted, std::optional<std::size_t> memory_bytes) {
  SearchOptions options{.workers = world_size(), .memory_bytes = memory_bytes};
  Session* const session = Session::current();
  if (session == nullptr) {  // `muster explain` shows the first of some workers
    std::string problem;
    options.calls = read_call_times(world_size(), problem);
    return best_of(noted, options);
  }
  Collectives& collectives = session->collectives();
  if (session->membership().local_size() == world_size())
    MUSTER_TRY_VOID(collectives.call_all([&](Communicator& all) -> Result<> {
      MUSTER_TRY(options.calls, measure_calls(all));
      return {};
    }));
  Choice chosen;
  if (rank() == 0) chosen = best_of(noted, options);
  MUSTER_TRY_VOID(
      collectives.call_all([&](Communicator& all) { return all.broadcast(&chosen, sizeof chosen, 0); }));
  return chosen;
}

// As long as nothing is decided: every worker sees all of a batch.
void share_batch() { set_shares_batch(world_size() > 1, fmt::format("data={},model=1", world_size())); }

}  // namespace

Result<> StepPlanner::begin(const StepLayout& layout) {
  layout_ = layout;
  set_shares_batch(true, layout.mesh_text());
  if (context().zero.level == 0) {  // else the script has said it
    has_set_zero_ = true;
    MUSTER_TRY_VOID(set_zero({.level = layout.zero_level, .threshold_bytes = layout.zero_threshold_bytes}));
  }
  return make_groups(layout);
}

Result<> StepPlanner::go_back_to(const std::optional<StepLayout>& layout) {
  known_.clear();
  has_cut_ = false;
  if (!is_searched_ || layout_ == layout) return {};
  if (std::exchange(has_set_zero_, false)) MUSTER_TRY_VOID(set_zero({}));
  layout_.reset();
  if (layout && layout->workers() == world_size()) return begin(*layout);
  share_batch();
  return {};
}

Result<> StepPlanner::decide(const graph::Graph& graph, std::span<const Tensor> inputs,
                             const graph::PlanOptions& options) {
  const NotedGraph noted{.graph = graph, .inputs = {inputs.begin(), inputs.end()}, .options = options};
  MUSTER_TRY(const Choice chosen, decided_by_all(noted, memory_bytes_));
  if (chosen.least_bytes > 0)
    return fail(
        Code::invalid_argument,
        fmt::format(
            "parallel.plan: no plan of {} workers needs {} or less at its peak: that which needs least, {}, "
            "takes {}. Start more workers, make the batch smaller, or allow more",
            world_size(), memory_text(*memory_bytes_), to_string(chosen.smallest(world_size())),
            memory_text(chosen.least_bytes)));
  if (chosen.data == 0)
    return fail(
        Code::invalid_argument,
        fmt::format("parallel.plan: the step of '{}' cannot be divided over {} workers: `muster plan -n "
                    "{} SCRIPT` says why",
                    graph.name, world_size(), world_size()));
  return begin(chosen.layout());
}

Result<bool> StepPlanner::divide_weights(const graph::Graph& graph) {
  bool divides = false;
  const auto layouts = graph::layouts_of_parameters(graph, *layout_);
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
  MUSTER_TRY_VOID(compare_shared_inputs(graph, inputs));
  const bool trains = train::trains(graph);
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
  graph::gather_for_use(graph, *layout_, rank());
  graph::cut_samples(graph, *layout_, rank());
  return false;
}

Result<> plan_steps(std::uint32_t data, std::uint32_t model, std::optional<std::size_t> memory_bytes) {
  std::optional<StepLayout> layout;
  const Zero& zero = context().zero;
  if (data > 0)
    layout = StepLayout{
        .data = data, .model = model, .zero_level = zero.level, .zero_threshold_bytes = zero.threshold_bytes};
  const bool ends = data == 1 && model == 1;
  process().planner =
      ends ? nullptr : new StepPlanner(layout, memory_bytes);  // kept: a run may still look at it
  if (explain_mode() == ExplainMode::off && process().cost_watch.load() == nullptr)
    graph::observe_graphs(process().planner);
  if (!layout) watch_reading();
  if (!layout) share_batch();
  return {};
}

}  // namespace muster::train
