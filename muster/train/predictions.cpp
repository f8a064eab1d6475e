#include "muster/train/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "muster/base/cores.h"
#include "muster/net/net.h"
#include "muster/train/process.h"

namespace muster::train {
namespace {

std::string age_text(std::int64_t seconds) {
  const auto counted = [](std::int64_t count, std::string_view unit) {
    return fmt::format("{} {}{} ago", count, unit, count == 1 ? "" : "s");
  };
  if (seconds < 60) return "just now";
  if (seconds < 3600) return counted(seconds / 60, "minute");
  if (seconds < 48 * 3600) return counted(seconds / 3600, "hour");
  return counted(seconds / (24 * 3600), "day");
}

}  // namespace

bool trains(const graph::Graph& graph) {
  return !graph.losses.empty() || std::ranges::any_of(graph.nodes, [](const graph::Node& node) {
    return node.op->optimizer.exists();
  });
}

std::optional<CallTimes> read_call_times(std::uint32_t workers, std::string& problem) {
  auto path = real_environment().get("MUSTER_CALL_TIMES");
  if (!path)
    if (auto file = call_times_file(real_environment(), net::host_name(), workers)) path = *std::move(file);
  const auto bytes = real_files().read(path.value_or(""));
  if (!bytes) {
    problem = fmt::format("muster explain --parallel {} SCRIPT measures them on this machine", workers);
    return std::nullopt;
  }
  auto times = call_times_from({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (times && times->workers == workers) return *std::move(times);
  problem = times ? fmt::format("{} is of {} workers, not of {}", *path, times->workers, workers)
                  : fmt::format("{}: {}", *path, times.error().message);
  return std::nullopt;
}

std::string call_times_text(const std::optional<CallTimes>& times, const std::string& problem) {
  if (!times) return fmt::format("calls: not timed: {}\n", problem);
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  return fmt::format("calls: measured between {} workers of this machine {} (--measure does it anew)\n",
                     times->workers, age_text(now - times->measured_at_s));
}

void watch_reading() { process().item_times = std::make_shared<data::ItemTimes>(); }

double reading_seconds() {
  const auto& times = process().item_times;
  return std::chrono::duration<double>(times ? times->middle().value_or(Duration{}) : Duration{}).count();
}

Result<graph::Prediction> predict(const NotedGraph& noted, std::uint32_t workers,
                                  const std::optional<CallTimes>& calls, graph::KnownTimes* known) {
  return graph::predict(
      noted.graph, noted.options, noted.inputs,
      {.workers = workers, .cores = allowed_cores(), .calls = calls ? &*calls : nullptr, .known = known});
}

std::string predictions_text(const std::vector<const NotedGraph*>& graphs, std::uint32_t workers) {
  std::string problem, text;
  std::optional<CallTimes> calls;
  if (workers > 1) calls = read_call_times(workers, problem);
  for (const NotedGraph* noted : graphs) {
    Result<graph::Prediction> made = predict(*noted, workers, calls, nullptr);
    if (made && noted->trains()) made->reading_s = reading_seconds();
    text += made ? fmt::format("\n{}: {}", noted->graph.name, to_string(*made))
                 : fmt::format("\n{}: not predicted: {}\n", noted->graph.name, made.error().message);
  }
  if (workers > 1 && !graphs.empty()) text += call_times_text(calls, problem);
  return text;
}

}  // namespace muster::train
