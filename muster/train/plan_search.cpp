#include "muster/train/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "muster/base/cores.h"
#include "muster/train/front_end.h"

namespace muster::train {
namespace {

std::vector<graph::StepLayout> layouts_for(std::uint32_t workers) {
  std::vector<graph::StepLayout> made;
  for (std::uint32_t model = 1; model <= workers; ++model) {
    if (workers % model != 0) continue;
    for (const std::int64_t level : {0, 1, 3})  // over a mesh 2 is 1
      if (level == 0 || workers / model > 1)
        made.push_back({.data = workers / model, .model = model, .zero_level = level});
  }
  return made;
}

int threads_of(std::uint32_t workers) {
  if (const auto chosen = real_environment().get("OMP_NUM_THREADS"))
    if (const int count = std::atoi(chosen->c_str()); count > 0) return count;
  return std::max(1, allowed_cores() / static_cast<int>(workers));
}

std::string row(std::string_view number, const graph::Prediction& made, std::string_view what) {
  return fmt::format("{:>4}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {}\n", number,
                     graph::time_text(made.step_s()), graph::time_text(made.computing_s),
                     graph::time_text(made.calls_s), graph::time_text(made.reading_shown_s()),
                     memory_text(made.sent_bytes), memory_text(made.peak_bytes), what);
}

// Whether a language above runs a script here.
bool is_script() { return front_end().print != nullptr; }

std::string line_for(const graph::StepLayout& layout) {
  if (is_script()) return fmt::format("muster.parallel.plan({})", to_string(layout));
  return fmt::format(
      "train::parallel::plan({{.data = {}, .model = {}{}}}).value();", layout.data, layout.model,
      layout.zero_level > 0 ? fmt::format(", .zero = {{.level = {}}}", layout.zero_level) : "");
}

nlohmann::json json_of(const StepPlan& plan) {
  nlohmann::json made = {{"data", plan.layout.data},
                         {"model", plan.layout.model},
                         {"zero", plan.layout.zero_level},
                         {"line", line_for(plan.layout)}};
  if (!plan.problem.empty()) made["dropped"] = plan.problem;
  if (!plan.prediction) return made;
  made["step_s"] = plan.prediction->step_s();
  made["computing_s"] = plan.prediction->computing_s;
  made["calls_s"] = plan.prediction->calls_s;
  made["reading_s"] = plan.prediction->reading_shown_s();
  made["sent_bytes"] = plan.prediction->sent_bytes;
  made["peak_bytes"] = plan.prediction->peak_bytes;
  return made;
}

}  // namespace

std::string memory_text(std::size_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < (1 << 20)) return fmt::format("{:.1f} KiB", value / (1 << 10));
  if (bytes < (1 << 30)) return fmt::format("{:.1f} MiB", value / (1 << 20));
  return fmt::format("{:.2f} GiB", value / (1 << 30));
}

FoundPlans find_plans(const std::vector<const NotedGraph*>& step, const SearchOptions& options) {
  FoundPlans found;
  const auto known = graph::make_known_times();
  std::vector<graph::StepGraph> graphs;
  for (const NotedGraph* noted : step) graphs.push_back({.graph = &noted->graph, .inputs = noted->inputs});
  const auto predicted = [&](const graph::StepLayout& layout, int threads) {
    return graph::predict(graphs, {.threads = threads}, layout,
                          {.workers = layout.workers(),
                           .cores = allowed_cores(),
                           .calls = options.calls ? &*options.calls : nullptr,
                           .known = known.get()});
  };
  if (auto alone = predicted({}, threads_of(1))) found.alone = *std::move(alone);
  for (const graph::StepLayout& layout : layouts_for(options.workers)) {
    StepPlan plan{.layout = layout, .prediction = std::nullopt};
    if (auto made = predicted(layout, threads_of(options.workers)))
      plan.prediction = *std::move(made);
    else
      plan.problem = made.error().message;
    if (plan.prediction && options.memory_bytes && plan.prediction->peak_bytes > *options.memory_bytes)
      plan.problem = fmt::format("it needs {}, and {} are allowed", memory_text(plan.prediction->peak_bytes),
                                 memory_text(*options.memory_bytes));
    (plan.problem.empty() ? found.plans : found.dropped).push_back(std::move(plan));
  }
  const double reading_s = reading_seconds();  // items are made while plans are timed
  if (found.alone) found.alone->reading_s = reading_s;
  for (StepPlan& plan : found.plans) plan.prediction->reading_s = reading_s;
  std::ranges::stable_sort(found.plans, std::less{},
                           [](const StepPlan& plan) { return plan.prediction->step_s(); });
  return found;
}

const StepPlan* smallest_dropped(const FoundPlans& found) {
  const StepPlan* smallest = nullptr;
  for (const StepPlan& plan : found.dropped)
    if (plan.prediction &&
        (smallest == nullptr || plan.prediction->peak_bytes < smallest->prediction->peak_bytes))
      smallest = &plan;
  return smallest;
}

std::string to_string(const graph::StepLayout& layout) {
  return fmt::format("data={}, model={}", layout.data, layout.model) +
         (layout.zero_level > 0 ? fmt::format(", zero={}", layout.zero_level) : "");
}

std::string to_text(const FoundPlans& found, const SearchOptions& options) {
  std::string text = fmt::format("\n{} plan{} for {} workers of this machine, the fastest first\n",
                                 found.plans.size(), found.plans.size() == 1 ? "" : "s", options.workers);
  text += fmt::format("{:>4}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {}\n", "", "step", "computing",
                      "calls", "reading", "sends", "peak", "plan");
  for (std::size_t i = 0; i < found.plans.size(); ++i)
    text += row(std::to_string(i + 1), *found.plans[i].prediction, to_string(found.plans[i].layout));
  if (found.alone) text += row("", *found.alone, "(one process with all cores)");
  for (const StepPlan& plan : found.dropped)
    text += fmt::format("dropped: {}: {}\n", to_string(plan.layout), plan.problem);
  if (found.plans.empty()) return text;
  return text + fmt::format(
                    "the line for the first, {}before the network is made; every worker "
                    "is given the whole batch:\n  {}\n",
                    is_script() ? "behind muster.init() and " : "", line_for(found.plans.front().layout));
}

std::string to_json(const FoundPlans& found, const SearchOptions& options) {
  nlohmann::json made = {
      {"workers", options.workers}, {"plans", nlohmann::json::array()}, {"dropped", nlohmann::json::array()}};
  for (const StepPlan& plan : found.plans) made["plans"].push_back(json_of(plan));
  for (const StepPlan& plan : found.dropped) made["dropped"].push_back(json_of(plan));
  if (found.alone) made["one_process_s"] = found.alone->step_s();
  return made.dump() + "\n";
}

PlanRequest plan_request() {
  PlanRequest made;
  const std::string text = real_environment().get("MUSTER_PLAN").value_or("1");
  char* rest = nullptr;
  made.search.workers = static_cast<std::uint32_t>(std::max(1L, std::strtol(text.c_str(), &rest, 10)));
  if (*rest == ',') {
    const unsigned long long bytes = std::strtoull(rest + 1, &rest, 10);
    if (bytes > 0) made.search.memory_bytes = bytes;
  }
  made.as_json = std::string_view(rest) == ",json";
  return made;
}

}  // namespace muster::train
