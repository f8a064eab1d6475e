#include "muster/graph/cost/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "muster/graph/amounts.h"
#include "muster/graph/cost/pipeline.h"
#include "muster/graph/cost/step_times.h"
#include "muster/graph/execution/explain.h"
#include "muster/graph/ops/transfer.h"
#include "muster/graph/partition/partition.h"
#include "muster/graph/sharding/mesh.h"

namespace muster::graph {
namespace {

std::uint32_t ranks_of(const Node& node, std::uint32_t workers) {
  const std::int64_t ranks = node.attributes.get("ranks", std::int64_t{0});
  return ranks == 0 ? workers : static_cast<std::uint32_t>(ranks);
}

std::size_t bytes_of(const CompiledPlan& plan, const Node& node) {
  std::size_t sum = 0;
  for (const ValueId id : node.inputs) sum += plan.graph.values[id].size_bytes();
  return sum;
}

// What it takes, and what each worker sends.
struct CallCost {
  std::optional<double> seconds;
  std::size_t sent_bytes = 0;
};

// A message to another stage: as much as a rank of two sends in an all_gather.
CallCost cost_of_message(const CompiledPlan& plan, const Node& node, const PredictionOptions& settings) {
  CallCost made{.seconds = std::nullopt, .sent_bytes = bytes_of(plan, node)};
  if (settings.calls != nullptr)
    if (const auto time = settings.calls->time_of(CallKind::all_gather, 2, made.sent_bytes))
      made.seconds = std::chrono::duration<double>(*time).count();
  return made;
}

CallCost cost_of_call(const CompiledPlan& plan, const Node& node, const PredictionOptions& settings) {
  if (node.op == &send_op()) return cost_of_message(plan, node, settings);
  if (node.op == &receive_op()) return {.seconds = 0.0};
  const std::uint32_t ranks = ranks_of(node, settings.workers);
  if (ranks < 2) return {.seconds = 0.0};
  const std::size_t bytes = bytes_of(plan, node);
  CallCost made;
  made.sent_bytes =
      CallsOfKind{.op = node.op->name, .ranks = static_cast<std::int64_t>(ranks), .calls = 1, .bytes = bytes}
          .sent_bytes();
  const auto kind = call_kind_from(node.op->name);
  if (settings.calls == nullptr || !kind) return made;
  if (const auto time = settings.calls->time_of(*kind, ranks, bytes))
    made.seconds = std::chrono::duration<double>(*time).count();
  return made;
}

// How much of the calls goes on while something is computed, where a core is free for them: calls run one
// after the other on a thread of their own, and steps wait as the plan says.
double hidden_time(const CompiledPlan& plan, const std::vector<double>& seconds) {
  double now = 0, calls_end = 0, waited = 0, all_calls = 0;
  std::vector<double> ends;
  const auto wait_for = [&](std::size_t count) {
    if (count == 0 || count > ends.size()) return;
    const double end = ends[count - 1];
    waited += std::max(0.0, end - now);
    now = std::max(now, end);
  };
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    wait_for(plan.steps[i].wait_count);
    if (!plan.steps[i].is_collective()) {
      now += seconds[i];
      continue;
    }
    all_calls += seconds[i];
    calls_end = std::max(now, calls_end) + seconds[i];
    ends.push_back(calls_end);
  }
  wait_for(ends.size());
  return all_calls - waited;
}

class Predicting {
 public:
  // `sharing`: how many times longer kernels take than they were timed.
  Predicting(const TimedPlan& timed, const PredictionOptions& settings, double sharing, Prediction& made)
      : timed_(timed), settings_(settings), sharing_(sharing), made_(made) {}

  void run() {
    const CompiledPlan& plan = timed_.plan;
    std::vector<double> seconds;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) seconds.push_back(add(i));
    if (plan.has_overlap && settings_.cores > static_cast<int>(settings_.workers) * plan.threads)
      made_.hidden_s = hidden_time(plan, seconds);
    for (auto& [name, group] : groups_) {
      made_.sent_bytes += group.sent_bytes;
      (group.is_call ? made_.calls_s : made_.computing_s) += group.seconds;
      made_.groups.push_back(std::move(group));
    }
    const double between_s = timed_.between_s * sharing_;
    made_.computing_s += between_s;
    made_.groups.push_back({.name = std::string(between_steps), .seconds = between_s});
    std::ranges::stable_sort(made_.groups, std::greater{}, &OpGroup::seconds);
  }

 private:
  double add(std::size_t index) {
    const PlannedStep& step = timed_.plan.steps[index];
    const Node& node = timed_.plan.graph.nodes[step.node];
    OpGroup& group = groups_[group_name(node, settings_.workers)];
    group.name = group_name(node, settings_.workers);
    ++group.steps;
    std::optional<double> seconds = timed_.seconds[index];
    if (seconds) *seconds *= sharing_;
    if (step.is_collective()) {
      group.is_call = true;
      const CallCost cost = cost_of_call(timed_.plan, node, settings_);
      group.sent_bytes += cost.sent_bytes;
      seconds = cost.seconds;
    }
    if (!seconds) ++group.not_timed;
    group.seconds += seconds.value_or(0);
    return seconds.value_or(0);
  }

  const TimedPlan& timed_;
  const PredictionOptions& settings_;
  double sharing_;
  Prediction& made_;
  std::map<std::string, OpGroup> groups_;
};

// ---- Stages -----------------------------------------------------------------------------------------------

// Of a placed graph: those of its mesh, of the job, or as many as its places name. One: it is whole.
Result<std::uint32_t> stages_of(const Graph& graph, const PlanOptions& options) {
  if (!is_placed(graph, options.input_homes)) return 1;
  MUSTER_TRY(const std::optional<MeshPlace> place, mesh_of(graph));
  if (place && place->mesh->stages() > 1) return place->mesh->stages();
  if (options.stage_index.size > 1) return options.stage_index.size;
  const Result<Partition> divided = divided_as_placed(graph);
  return divided ? static_cast<std::uint32_t>(divided->stages.size()) : 1;
}

std::vector<PipelineStep> pipeline_steps(const TimedPlan& timed, const PredictionOptions& settings) {
  std::vector<PipelineStep> made;
  const CompiledPlan& plan = timed.plan;
  const double between_s = timed.between_s / static_cast<double>(std::max<std::size_t>(1, plan.steps.size()));
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlannedStep& step = plan.steps[i];
    const Node& node = plan.graph.nodes[step.node];
    made.push_back({.kind = PipelineStep::Kind::compute, .seconds = between_s});
    if (step.kind == PlannedStep::Kind::compute) {
      made.back().seconds += timed.seconds[i].value_or(0);
      continue;
    }
    made.push_back({.kind = step.kind == PlannedStep::Kind::send      ? PipelineStep::Kind::send
                            : step.kind == PlannedStep::Kind::receive ? PipelineStep::Kind::receive
                                                                      : PipelineStep::Kind::call,
                    .seconds = cost_of_call(plan, node, settings).seconds.value_or(0),
                    .peer = static_cast<std::uint32_t>(node.attributes.get("peer", std::int64_t{0}))});
  }
  return made;
}

// What a stage computes with: a batch that another one reads is made up here.
std::vector<Tensor> present(std::span<const Tensor> inputs) {
  std::vector<Tensor> made(inputs.begin(), inputs.end());
  for (Tensor& input : made)
    if (input.absence() != nullptr) input = Tensor::zeros(input.dtype(), input.shape());
  return made;
}

// Each stage is timed by itself, and then they run beside each other as their messages let them.
Result<Prediction> predict_stages(const Graph& graph, const PlanOptions& options,
                                  std::span<const Tensor> inputs, const PredictionOptions& settings,
                                  std::uint32_t stages, Prediction made) {
  PredictionOptions of_stage = settings;
  of_stage.workers = std::max(1U, settings.workers / stages);
  const std::vector<Tensor> given = present(inputs);
  std::vector<TimedPlan> timed;
  std::vector<std::vector<PipelineStep>> steps;
  made.stages = stages;
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    PlanOptions here = options;
    here.stage_index = {.rank = stage, .size = stages};
    MUSTER_TRY(TimedPlan plan,
               time_steps(graph, here, given, {.copies = made.copies, .known = settings.known}));
    made.runs = std::max(made.runs, plan.runs);
    made.peak_bytes = std::max(made.peak_bytes, explain(plan.plan).peak_bytes());
    steps.push_back(pipeline_steps(plan, of_stage));
    timed.push_back(std::move(plan));
  }
  const PipelineTimes times = run_beside(
      steps,
      {.workers_of_stage = of_stage.workers, .threads = options.threads, .cores = std::max(1, made.cores)});
  const auto busiest = std::ranges::min_element(times.stages, std::less{}, &PipelineTimes::Stage::waiting_s) -
                       times.stages.begin();
  const auto& slowest = times.stages[static_cast<std::size_t>(busiest)];
  double alone_s = 0;
  for (const PipelineStep& step : steps[static_cast<std::size_t>(busiest)])
    if (step.kind == PipelineStep::Kind::compute) alone_s += step.seconds;
  const double sharing = alone_s > 0 ? slowest.computing_s / alone_s : 1;
  Predicting(timed[static_cast<std::size_t>(busiest)], of_stage, sharing, made).run();
  made.hidden_s = 0;
  made.calls_s += slowest.waiting_s;
  made.groups.push_back(
      {.name = std::string(waiting_for_stages), .is_call = true, .seconds = slowest.waiting_s});
  std::ranges::stable_sort(made.groups, std::greater{}, &OpGroup::seconds);
  return made;
}

std::string groups_text(const Prediction& prediction) {
  std::string text =
      fmt::format("{:>10}  {:>6}  {:>10}  {:>5}  {}\n", "time", "share", "sends", "steps", "what");
  const double all = std::max(1e-12, prediction.computing_s + prediction.calls_s);
  for (const OpGroup& group : prediction.groups) {
    const bool is_timed = group.steps == 0 || group.not_timed < group.steps;
    text +=
        fmt::format("{:>10}  {:>6}  {:>10}  {:>5}  {}\n", is_timed ? time_text(group.seconds) : "not timed",
                    is_timed ? fmt::format("{:.1f} %", 100 * group.seconds / all) : "",
                    group.is_call ? bytes_text(group.sent_bytes) : "", group.steps, group.name);
  }
  return text;
}

}  // namespace

double Prediction::sharing() const {
  return std::max(1.0, static_cast<double>(workers) * threads / std::max(1, cores));
}

double Prediction::reading_shown_s() const {
  if (reading_s == 0) return 0;
  if (stages > 1) return std::max(0.0, reading_s - step_without_reading_s());  // one worker reads for all
  const double available = std::max(1, cores);
  const double busy = workers * (computing_s / sharing() * threads + reading_s) / available;
  return std::max({0.0, busy - computing_s, reading_s - computing_s});
}

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

std::string group_name(const Node& node, std::uint32_t workers) {
  if (!node.op->collective) return std::string(node.op->name);
  return fmt::format("{} of {}", node.op->name, counted(ranks_of(node, workers), "worker"));
}

std::shared_ptr<KnownTimes> make_known_times() { return std::make_shared<KnownTimes>(); }

Result<Prediction> predict(const Graph& graph, const PlanOptions& options, std::span<const Tensor> inputs,
                           const PredictionOptions& settings) {
  Prediction made{.workers = settings.workers, .cores = settings.cores, .threads = options.threads};
  const auto at_once = static_cast<std::size_t>(std::max(1, settings.cores / std::max(1, options.threads)));
  made.copies = std::min<std::size_t>(settings.workers, at_once);
  MUSTER_TRY(const std::uint32_t stages, stages_of(graph, options));
  if (stages > 1) return predict_stages(graph, options, inputs, settings, stages, std::move(made));
  MUSTER_TRY(const TimedPlan timed,
             time_steps(graph, options, inputs, {.copies = made.copies, .known = settings.known}));
  made.runs = timed.runs;
  const Explanation explained = explain(timed.plan);
  made.peak_bytes = explained.peak_bytes();
  Predicting(timed, settings, made.sharing(), made).run();
  return made;
}

Prediction joined(const Prediction& first, const Prediction& second) {
  Prediction made = first;
  for (const OpGroup& group : second.groups) {
    const auto found = std::ranges::find(made.groups, group.name, &OpGroup::name);
    if (found == made.groups.end()) {
      made.groups.push_back(group);
      continue;
    }
    found->steps += group.steps;
    found->not_timed += group.not_timed;
    found->seconds += group.seconds;
    found->sent_bytes += group.sent_bytes;
  }
  std::ranges::stable_sort(made.groups, std::greater{}, &OpGroup::seconds);
  made.computing_s += second.computing_s;
  made.calls_s += second.calls_s;
  made.hidden_s += second.hidden_s;
  made.sent_bytes += second.sent_bytes;
  made.peak_bytes = std::max(first.peak_bytes, second.peak_bytes);
  made.runs = std::max(first.runs, second.runs);
  made.stages = std::max(first.stages, second.stages);
  return made;
}

Result<Prediction> predict(std::span<const StepGraph> step, const PlanOptions& options,
                           const StepLayout& layout, const PredictionOptions& settings) {
  for (const StepGraph& each : step)
    if (const auto samples = samples_of(*each.graph); samples && *samples % layout.data != 0)
      return fail(
          Code::invalid_argument,
          fmt::format("a batch of {} samples cannot be cut into {} equal parts", *samples, layout.data));
  ReplacedParameters own;
  std::optional<Prediction> made;
  bool cuts_weights = false;
  for (const StepGraph& each : step) {
    Graph graph = with_own_parameters(*each.graph, own, false);
    cuts_weights = !layouts_of_weights(graph, layout).empty() || cuts_weights;
    divide_step(graph, layout);
    MUSTER_TRY(const Prediction prediction, predict(graph, options, each.inputs, settings));
    made = made ? joined(*made, prediction) : prediction;
  }
  if (layout.model > 1 && !cuts_weights)
    return fail(Code::invalid_argument,
                fmt::format("no weight can be cut into {} equal parts", layout.model));
  return *std::move(made);
}

std::string to_string(const Prediction& prediction) {
  std::string text = fmt::format(
      "predicted step of each of {}: {} (computing {}, calls {}{}{}), sends {}, holds {} at the peak\n",
      counted(prediction.workers, "worker"), time_text(prediction.step_s()),
      time_text(prediction.computing_s), time_text(prediction.calls_s),
      prediction.hidden_s > 0 ? fmt::format(", of which {} beside computing", time_text(prediction.hidden_s))
                              : "",
      prediction.reading_shown_s() > 0
          ? fmt::format(", reading its batch {} more", time_text(prediction.reading_shown_s()))
          : "",
      bytes_text(prediction.sent_bytes), bytes_text(prediction.peak_bytes));
  text += groups_text(prediction);
  text += fmt::format("kernels: timed now, in {} of this plan, {} at once", counted(prediction.runs, "run"),
                      prediction.copies);
  if (prediction.sharing() > 1 && prediction.stages < 2)
    text += fmt::format("; {} workers with {} share {}: times {:.3g} as long", prediction.workers,
                        counted(static_cast<std::size_t>(prediction.threads), "thread"),
                        counted(static_cast<std::size_t>(prediction.cores), "core"), prediction.sharing());
  if (prediction.stages > 1)
    text += fmt::format(
        "\nstages: {}, each timed by itself, that then run beside each other as their messages let them: the "
        "times are those of a worker of the busiest, the memory that of the one that holds most",
        prediction.stages);
  return text + "\nnot predicted: Python between the steps, waiting for slower workers\n";
}

}  // namespace muster::graph
