#include "muster/train/explain.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "muster/net/net.h"
#include "muster/train/context.h"
#include "muster/train/front_end.h"
#include "muster/train/plan_search.h"
#include "muster/train/predictions.h"
#include "muster/train/process.h"
#include "muster/train/step_planner.h"

namespace muster::train {
namespace {

using graph::Explanation;

// Behind all that the language above has printed.
void print(const std::string& text) {
  flush_front_end();
  fmt::print("{}", text);
  std::fflush(stdout);
}

// The first that is placed, or else over a mesh; nothing: none is.
std::optional<std::string> picture_of(std::span<const Explanation> explanations) {
  for (const Explanation& each : explanations)
    if (!each.partition.stages.empty()) return graph::to_svg(each.partition);
  for (const Explanation& each : explanations)
    if (each.mesh.mesh != nullptr) return graph::to_svg(each.mesh);
  return std::nullopt;
}

std::string write_picture(std::span<const Explanation> explanations, const std::string& path) {
  const auto picture = picture_of(explanations);
  if (!picture)
    return fmt::format(
        "\nNo picture was written to {}: nothing is placed on a worker (Cell.place), or lies on a mesh.\n",
        path);
  const Result<> written = real_files().write(path, std::as_bytes(std::span(*picture)));
  return written ? fmt::format("\nThe picture of the workers is in {}.\n", path)
                 : fmt::format("\nNo picture was written: {}\n", written.error().message);
}

}  // namespace

class Explainer final : public graph::FunctionObserver, public graph::GraphObserver {
 public:
  explicit Explainer(ExplainMode mode) : mode_(mode) {}

  Result<bool> compiling(graph::Graph& graph, std::span<const Tensor> inputs,
                         const graph::PlanOptions& options) override {
    if (StepPlanner* const planner = process().planner) {
      MUSTER_TRY(const bool traces_again, planner->compiling(graph, inputs, options));
      if (traces_again) return true;
    }
    if (shows_steps())
      noted_.push_back({.graph = graph, .inputs = {inputs.begin(), inputs.end()}, .options = options});
    return false;
  }

  // Of each of these the graph that was traced last under its name.
  std::vector<const NotedGraph*> graphs_of(std::span<const Explanation> explanations) const {
    std::vector<const NotedGraph*> found;
    for (const Explanation& explanation : explanations) {
      const auto last = std::find_if(noted_.rbegin(), noted_.rend(), [&](const NotedGraph& noted) {
        return noted.graph.name == explanation.name;
      });
      if (last != noted_.rend()) found.push_back(&*last);
    }
    return found;
  }

  void traced(const graph::Function& function, const graph::TraceRecord& trace) override {
    if (mode_ == ExplainMode::trace)
      print(fmt::format("trace {} of {}: {}\n", function.trace_count(), function.name(), to_string(trace)));
  }

  void calling(const graph::Function& function, bool again) override {
    if (!shows_steps()) return;
    if (again && trains(seen_)) end_explained(seen_);
    if (again) return;
    seen_.push_back(function.explain());
    if (explained_workers() > 1 && !seen_.back().calls.empty())
      end_explained(seen_);  // no worker would answer
  }

  // Whether they are what is asked for: a search is about steps that train.
  bool trains(std::span<const Explanation> explanations) const {
    return mode_ == ExplainMode::plan ||
           std::ranges::any_of(graphs_of(explanations),
                               [](const NotedGraph* noted) { return noted->trains(); });
  }

  // The script has come to its end.
  void conclude() const;

 private:
  ExplainMode mode_;
  std::vector<NotedGraph> noted_;
  std::vector<Explanation> seen_;  // in the order of their first run
};

namespace {

// Whether times are asked for: `muster explain --parallel`.
bool predicts() { return real_environment().get("MUSTER_CALL_TIMES").has_value(); }

void print_all(std::span<const Explanation> explanations) {
  std::string text;
  for (const Explanation& explanation : explanations) text += fmt::format("\n{}", to_string(explanation));
  if (predicts()) text += predictions_text(process().explainer->graphs_of(explanations), explained_workers());
  if (const auto path = real_environment().get("MUSTER_EXPLAIN_SVG"))
    text += write_picture(explanations, *path);
  print(text);
}

}  // namespace

void Explainer::conclude() const {
  if (!shows_steps()) return;
  if (mode_ == ExplainMode::search) end_explained(seen_);
  if (seen_.empty())
    print("\nThe script made no plan: it called no cell and no traced function, or it runs in eager mode.\n");
  else
    print_all(seen_);
}

namespace {

ExplainMode mode_from(const Environment& environment) {
  const std::string wanted = environment.get("MUSTER_EXPLAIN").value_or("");
  if (wanted == "plan") return ExplainMode::plan;
  if (wanted == "trace") return ExplainMode::trace;
  if (wanted == "search") return ExplainMode::search;
  if (!wanted.empty())
    log::warning(fmt::format("MUSTER_EXPLAIN='{}' is ignored: it is 'plan', 'trace' or 'search'", wanted));
  return ExplainMode::off;
}

ExplainMode begin() {
  const ExplainMode mode = mode_from(real_environment());
  if (mode == ExplainMode::off) return mode;
  report_use(real_environment());
  process().explainer = new Explainer(mode);
  graph::observe_functions(process().explainer);
  graph::observe_graphs(process().explainer);
  watch_reading();
  std::atexit([] { process().explainer->conclude(); });
  return mode;
}

}  // namespace

void report_use(const Environment& environment) {
  const auto name = environment.get("MUSTER_USE_FILE");
  if (!name) return;
  const net::Descriptor file(::open(name->c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file) (void)!::write(file.get(), "1", 1);
}

ExplainMode explain_mode() {
  static const ExplainMode mode = begin();
  return mode;
}

std::uint32_t explained_workers() {
  static const std::uint32_t workers = [] {
    const auto given = real_environment().get("MUSTER_EXPLAIN_WORKERS");
    std::uint32_t number = 1;
    if (given) std::from_chars(given->data(), given->data() + given->size(), number);
    return explain_mode() == ExplainMode::plan ? std::max(number, 1u) : 1;
  }();
  return workers;
}

bool shows_steps() { return explain_mode() == ExplainMode::plan || explain_mode() == ExplainMode::search; }

namespace {

// An error of `muster plan`.
[[noreturn]] void end_without_plan(const std::string& problem) {
  flush_front_end();
  fmt::print(stderr, "muster plan: {}\n", problem);
  _exit(1);
}

[[noreturn]] void end_with_plans(std::vector<const NotedGraph*> step) {
  std::erase_if(step, [](const NotedGraph* noted) { return !noted->trains(); });
  if (step.empty())
    end_without_plan(fmt::format(
        "the script came to its end, or failed, before its first step that trains: there is nothing to "
        "plan{}",
        context().mode == Mode::eager ? ". It runs in eager mode, where steps have no plan: use graph mode"
                                      : ""));
  PlanRequest request = plan_request();
  std::string problem;
  if (request.search.workers > 1) request.search.calls = read_call_times(request.search.workers, problem);
  const FoundPlans found = find_plans(step, request.search);
  print(request.as_json ? to_json(found, request.search) : to_text(found, request.search));
  if (!request.as_json && !context().mesh.empty())
    print(
        fmt::format("the script's own layout over {} is not among them: muster explain --parallel {} SCRIPT "
                    "predicts it; a plan takes its place\n",
                    context().mesh, request.search.workers));
  if (!request.as_json && request.search.workers > 1) print(call_times_text(request.search.calls, problem));
  if (!found.plans.empty()) _exit(0);
  const StepPlan* const smallest = smallest_dropped(found);
  if (smallest == nullptr) end_without_plan("no plan is possible: see the reasons above");
  end_without_plan(
      fmt::format("no plan fits: of the smallest, {}, {}", to_string(smallest->layout), smallest->problem));
}

}  // namespace

void end_explained(std::span<const Explanation> explanations) {
  if (explain_mode() == ExplainMode::search) end_with_plans(process().explainer->graphs_of(explanations));
  print_all(explanations);
  _exit(0);
}

}  // namespace muster::train
