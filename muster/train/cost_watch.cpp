#include "muster/train/cost_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "muster/train/explain.h"
#include "muster/train/job.h"
#include "muster/train/process.h"
#include "muster/train/session.h"
#include "muster/train/shared_inputs.h"
#include "muster/train/step_planner.h"

namespace muster::train {
namespace {

// Groups of calls are told by their op alone: what runs does not say among how many. In parentheses is what
// is no op, as the waiting of stages.
std::string op_of(const std::string& group) {
  return group.starts_with('(') ? group : group.substr(0, group.find(' '));
}

double seconds_of(Duration time) { return std::chrono::duration<double>(time).count(); }

bool is_update(std::string_view name) {
  const graph::Op* const op = graph::find_op(name);
  return op != nullptr && op->optimizer.exists();
}

std::string row(double predicted, double measured, std::string_view what) {
  const auto text = [](double seconds) { return seconds > 0 ? graph::time_text(seconds) : "-"; };
  return fmt::format("{:>10}  {:>10}  {:>8}  {}\n", text(predicted), text(measured),
                     predicted > 0 && measured > 0 ? fmt::format("{:.2f}", measured / predicted) : "", what);
}

}  // namespace

Result<bool> CostWatch::compiling(graph::Graph& graph, std::span<const Tensor> inputs,
                                  const graph::PlanOptions& options) {
  MUSTER_TRY_VOID(compare_shared_inputs(graph, inputs));
  if (StepPlanner* const planner = process().planner) {
    MUSTER_TRY(const bool traces_again, planner->compiling(graph, inputs, options));
    if (traces_again) return true;
  }
  const NotedGraph noted{.graph = graph, .inputs = {inputs.begin(), inputs.end()}, .options = options};
  if (!noted.trains()) return false;
  std::string problem;
  std::optional<CallTimes> calls;
  if (workers_ > 1) calls = read_call_times(workers_, problem);
  const Result<graph::Prediction> made = predict(noted, workers_, calls, nullptr);
  const std::lock_guard lock(mutex_);
  problems_.clear();
  if (workers_ > 1) problems_ = call_times_text(calls, problem);
  if (made)
    predicted_.insert_or_assign(graph.name, *made);
  else
    problems_ += fmt::format("{}: not predicted: {}\n", graph.name, made.error().message);
  return false;
}

void CostWatch::ran(const Step& step, TimePoint begin, TimePoint end, const Describe& /*describe*/) {
  const std::lock_guard lock(mutex_);
  if (is_done_) return;
  auto found = spent_.find(step.op);
  if (found == spent_.end()) found = spent_.emplace(std::string(step.op), Spent{}).first;
  found->second.time += end - begin;
  ++found->second.steps;
  if (!is_update(step.op)) return;
  Beat& beat = beats_[{step.plan, step.index}];
  if (++beat.count == steps_skipped) {
    beat.since = end;
    beat.spent = spent_;
  }
  if (beat.count < steps_skipped + steps_watched) return;
  is_done_ = true;
  tell_(table(beat, end));
}

std::string CostWatch::table(const Beat& beat, TimePoint now) const {
  constexpr auto steps = static_cast<double>(steps_watched);
  const double measured = seconds_of(now - beat.since) / steps;
  std::map<std::string, std::pair<double, double>> rows;  // predicted, measured
  double predicted = 0, between = 0, in_ops = 0;
  for (const auto& [name, prediction] : predicted_) {
    predicted += prediction.step_s();
    for (const graph::OpGroup& group : prediction.groups)
      (group.name == graph::between_steps ? between : rows[op_of(group.name)].first) += group.seconds;
  }
  if (!predicted_.empty()) {
    graph::Prediction reading = predicted_.begin()->second;
    reading.reading_s = reading_seconds();
    between += reading.reading_shown_s();
    predicted += reading.reading_shown_s();
  }
  for (const auto& [op, spent] : spent_) {
    const auto before = beat.spent.find(op);
    const double time =
        seconds_of(spent.time - (before == beat.spent.end() ? Duration{} : before->second.time)) / steps;
    if (time > 0) rows[op].second = time;
    in_ops += time;
  }
  std::vector<std::pair<std::string, std::pair<double, double>>> sorted(rows.begin(), rows.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) {
    return std::max(a.second.first, a.second.second) > std::max(b.second.first, b.second.second);
  });
  std::string text = fmt::format("predicted beside measured: a step of rank 0 of {}, the mean of {}\n",
                                 workers_, steps_watched);
  text += fmt::format("{:>10}  {:>10}  {:>8}  {}\n", "predicted", "measured", "ratio", "what");
  text += row(predicted, measured, "the whole step");
  for (const auto& [op, times] : sorted) text += row(times.first, times.second, op);
  text += row(between, std::max(0.0, measured - in_ops), "between the ops: data, Python, callbacks");
  return text + problems_ + "a call takes what it waits for other workers, too; that is not predicted\n";
}

void watch_costs() {
  if (real_environment().get("MUSTER_EXPLAIN_COSTS").value_or("") != "1") return;
  if (explain_mode() != ExplainMode::off || rank() != 0 || process().cost_watch.load() != nullptr) return;
  Session* const session = Session::current();
  if (session != nullptr && session->membership().local_size() != world_size())
    return log::warning(
        "MUSTER_EXPLAIN_COSTS has no effect: steps are predicted where all workers share one machine");
  auto* const watch = new CostWatch(world_size(), [](const std::string& text) {
    fmt::print("{}", text);
    std::fflush(stdout);
    process().cost_watch = nullptr;
  });
  process().cost_watch = watch;
  watch_reading();
  graph::observe_graphs(watch);
}

}  // namespace muster::train
