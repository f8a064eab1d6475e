#include "muster/graph/execution/compiled_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "muster/graph/execution/updates.h"
#include "muster/graph/ops/transfer.h"
#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"
#include "muster/graph/sharding/mesh.h"
#include "muster/graph/sharding/updates.h"
#include "muster/graph/trace.h"

namespace muster::graph {
namespace {

// By value that is received: its format where one worker does all. Kernels are chosen by the formats in
// which values come, and other kernels may give other bits.
using SeenAs = std::vector<FormatPtr>;

// Divides a stage over the mesh. What it sends and receives is divided as in the whole graph.
Result<> divide_stage(StageGraph& part, const MeshPlace& place) {
  MUSTER_TRY(Layouts layouts, layouts_over_mesh(part.whole, place));
  for (std::size_t i = 0; i < part.transferred.size(); ++i) {
    Shape& shape = part.partition.value_transfers[i].type.shape;
    shape = layouts.at(part.transferred[i]).piece_shape(shape);
  }
  for (const auto& [here, there] : part.received) layouts.insert_or_assign(here, layouts.at(there));
  MUSTER_TRY_VOID(divide_over_mesh(part.graph, place, layouts));
  part.received.clear();  // pieces have formats of their own
  return {};
}

// This worker's stage of `whole` takes the place of it.
Result<SeenAs> take_stage(CompiledPlan& plan, const Graph& whole, const std::optional<MeshPlace>& place,
                          const PlanOptions& options) {
  MUSTER_TRY(StageGraph part, partition(whole, options.stage_index, options.input_homes));
  if (place) MUSTER_TRY_VOID(divide_stage(part, *place));
  plan.graph = std::move(part.graph);
  plan.stage.index = options.stage_index;
  plan.stage.outputs = std::move(part.outputs);
  plan.stage.partition = std::move(part.partition);
  SeenAs seen_as;
  if (!part.received.empty()) {
    MUSTER_TRY(const auto formats_alone, formats_in_plan(part.whole, options.threads));
    seen_as.resize(plan.graph.values.size());
    for (const auto& [here, there] : part.received) seen_as[here] = formats_alone[there];
  }
  for (auto& [parameter, home] : part.homes) parameter->set_home(std::move(home));
  for (const auto& [id, tensor] : plan.graph.captured)
    if (const std::string* reason = tensor.absence())
      return fail(Code::invalid_argument,
                  fmt::format("'{}' holds a tensor that is needed here: {}", plan.graph.name, *reason));
  return seen_as;
}

// The graph, or what this worker does of it.
Result<SeenAs> take_graph(CompiledPlan& plan, const Graph& whole, const PlanOptions& options) {
  const bool placed = is_placed(whole, options.input_homes);
  MUSTER_TRY(const std::optional<MeshPlace> place, mesh_of(whole));
  if (placed && options.stage_index.size > 1) return take_stage(plan, whole, place, options);
  if (place && place->mesh->stages() > 1 && !placed)
    return fail(Code::invalid_argument,
                fmt::format("'{}' is divided over a mesh of {} stages, and nothing of it is placed on one: "
                            "place its cells, Cell.place(rank=0) to (rank={})",
                            whole.name, place->mesh->stages(), place->mesh->stages() - 1));
  plan.graph = whole;
  if (place) MUSTER_TRY_VOID(divide_over_mesh(plan.graph, *place));
  if (!placed) return SeenAs{};
  // A part that could not be is no error where nothing is divided.
  if (Result<Partition> divided = divided_as_placed(whole)) plan.stage.partition = *std::move(divided);
  return SeenAs{};
}

void plan_parameters(CompiledPlan& plan, std::vector<ParameterFormatPtr> formats) {
  const Graph& graph = plan.graph;
  formats.resize(graph.parameters.size());
  const std::vector<ValueId> roots = roots_of(graph);
  std::vector<bool> is_written(graph.values.size(), false), is_statistic(graph.values.size(), false);
  for (const Node& node : graph.nodes)
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.op->writes(i)) continue;
      is_written[roots[node.inputs[i]]] = true;
      if (node.op->sharing != Sharing::in_place) is_statistic[roots[node.inputs[i]]] = true;
    }
  for (std::size_t i = 0; i < formats.size(); ++i) {
    const auto& [id, parameter] = graph.parameters[i];
    if (is_statistic[id]) parameter->mark_statistic();
    plan.parameters.push_back({parameter, std::move(formats[i]), is_written[id]});
  }
}

void plan_layout(CompiledPlan& plan, std::span<const Chosen> chosen, const Overlap& overlap) {
  Sizes sizes;
  for (ValueId id = 0; id < plan.graph.values.size(); ++id)
    sizes.values_bytes.push_back(size_bytes(plan.graph.values[id], plan.formats[id]));
  for (const Chosen& each : chosen) sizes.scratch_bytes.push_back(each.prepared.scratch_bytes);
  plan.layout = plan_memory(plan.graph, sizes, overlap);
}

// By node: how many calls must be done when it begins. Calls are done in their order.
std::vector<std::size_t> wait_counts(const Graph& graph, const Overlap& overlap) {
  std::vector<std::size_t> counts(graph.nodes.size() + 1, 0);
  std::size_t calls = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].op->collective) counts[overlap.joins[i]] = ++calls;
  std::inclusive_scan(counts.begin(), counts.end(), counts.begin(),
                      [](std::size_t a, std::size_t b) { return std::max(a, b); });
  return counts;
}

PlannedStep::Kind kind_of(const Op& op) {
  if (&op == &send_op()) return PlannedStep::Kind::send;
  if (&op == &receive_op()) return PlannedStep::Kind::receive;
  return op.collective ? PlannedStep::Kind::reduction : PlannedStep::Kind::compute;
}

// Of one node, or of several updates as one.
PlannedStep step_of(const Graph& graph, std::span<const Node> nodes, std::span<Chosen> chosen) {
  PlannedStep step;
  step.kind = kind_of(*nodes[0].op);
  step.kernel = chosen[0].kernel->name;
  step.node = static_cast<std::size_t>(nodes.data() - graph.nodes.data());
  step.nodes = nodes.size();
  if (nodes.size() == 1) {
    step.run = chosen[0].kernel->run;
    step.prepared = std::move(chosen[0].prepared);
  } else {
    step.run = run_updates;
    step.prepared = Prepared{std::make_shared<const Updates>(join_updates(graph, nodes, chosen))};
  }
  return step;
}

void plan_steps(CompiledPlan& plan, std::span<Chosen> chosen, const Overlap& overlap) {
  const std::vector<std::size_t> counts = wait_counts(plan.graph, overlap);
  const std::vector<ValueId> roots = roots_of(plan.graph);
  std::vector<bool> is_parameter(plan.graph.values.size(), false);
  for (const auto& [id, parameter] : plan.graph.parameters) is_parameter[id] = true;
  const std::span<const Node> nodes = plan.graph.nodes;
  for (std::size_t i = 0, count = 1; i < nodes.size(); i += count) {
    count = joined_updates(nodes.subspan(i), chosen.subspan(i));
    if (chosen[i].kernel == nullptr) continue;
    const std::size_t index = plan.steps.size();
    PlannedStep& step =
        plan.steps.emplace_back(step_of(plan.graph, nodes.subspan(i, count), chosen.subspan(i, count)));
    step.wait_count = counts[i + count - 1];
    step.is_async = overlap.beside[i];
    if (step.is_collective()) plan.collectives.push_back(index);
    if (nodes[i].op->sharing == Sharing::in_place && is_parameter[roots[nodes[i].inputs[0]]])
      plan.first_update = std::min(plan.first_update, index);
    if (step.kind != PlannedStep::Kind::reduction)
      plan.has_async_transfers = plan.has_async_transfers || step.is_async;
  }
  plan.has_overlap = overlap.any;
}

std::optional<std::uint32_t> rank_of(const std::optional<Parameter::Home>& home) {
  return home ? std::optional(home->rank) : std::nullopt;
}

std::optional<TensorLayout> pieces_of(const Parameter& parameter) {
  return parameter.share() ? std::optional(parameter.share()->layout) : std::nullopt;
}

}  // namespace

Result<CompiledPlan> compile(const Graph& graph, const PlanOptions& options) {
  CompiledPlan plan;
  plan.threads = options.threads;
  Graph noted = graph;
  note_losses(noted);
  MUSTER_TRY(const SeenAs seen_as, take_graph(plan, noted, options));
  for (const auto& [id, parameter] : graph.parameters)
    plan.stage.homes.push_back({parameter, rank_of(parameter->home()), pieces_of(*parameter)});
  if (plan.graph.divided == nullptr) MUSTER_TRY_VOID(divide_updates(plan.graph));
  plan.graph.own_gradients.clear();  // not needed any more, and they may hold a cell, which holds its plans
  plan.detects_anomalies = detects_anomalies();
  if (plan.detects_anomalies)
    remove_dead(plan.graph);
  else
    fuse(plan.graph);
  make_buckets(plan.graph);
  join_calls(plan.graph);
  gather_updates(plan.graph);
  MUSTER_TRY(Choices choices, choose_kernels(plan.graph, plan.threads, seen_as));
  plan.graph = std::move(choices.graph);
  plan.formats = std::move(choices.formats);
  plan_parameters(plan, std::move(choices.parameter_formats));
  const Overlap overlap = overlap_of(plan.graph);
  plan_layout(plan, choices.nodes, overlap);
  plan_steps(plan, choices.nodes, overlap);
  return plan;
}

bool PlannedStage::Home::is_there() const {
  const std::optional<Parameter::Share>& share = parameter->share();
  if (rank_of(parameter->home()) != rank || share.has_value() != pieces.has_value()) return false;
  return !share || (share->layout.dims == pieces->dims && *share->layout.mesh == *pieces->mesh);
}

bool PlannedStage::is_valid() const { return std::ranges::all_of(homes, &Home::is_there); }

}  // namespace muster::graph
