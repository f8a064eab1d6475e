#include "muster/graph/explanation.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "muster/graph/amounts.h"

namespace muster::graph {
namespace {

std::string result_text(const PlanStep& step) {
  return step.format.empty() ? step.result : fmt::format("{} in {}", step.result, step.format);
}

// Columns as wide as their widest entry.
struct Widths {
  std::size_t op = 2, kernel = 6, result = 6;

  explicit Widths(const std::vector<PlanStep>& steps) {
    for (const PlanStep& step : steps) {
      op = std::max(op, step.op.size());
      kernel = std::max(kernel, step.kernel.size());
      result = std::max(result, result_text(step).size());
    }
  }
};

std::string steps_text(const std::vector<PlanStep>& steps) {
  const Widths width(steps);
  std::string text = fmt::format("{:>6}  {:<{}}  {:<{}}  {:<{}}  {:>12}  {:>10}\n", "step", "op", width.op,
                                 "kernel", width.kernel, "result", width.result, "work", "moves");
  std::size_t number = 0;
  for (const PlanStep& step : steps)
    text += fmt::format("{:>6}  {:<{}}  {:<{}}  {:<{}}  {:>12}  {:>10}\n", ++number, step.op, width.op,
                        step.kernel, width.kernel, result_text(step), width.result,
                        step.flops > 0 ? flops_text(step.flops) : "", bytes_text(step.bytes));
  return text;
}

std::string parameters_text(const Explanation& explanation) {
  std::size_t width = 0;
  std::int64_t elements = 0;
  for (const auto& [name, type] : explanation.parameters) {
    width = std::max(width, name.size());
    elements += type.shape.elements();
  }
  std::string text = fmt::format("parameters: {} of {} elements, {}\n", explanation.parameters.size(),
                                 elements, bytes_text(explanation.parameters_bytes()));
  for (const auto& [name, type] : explanation.parameters)
    text += fmt::format("  {:<{}}  {}\n", name, width, to_string(type));
  return text;
}

std::string memory_text(const Explanation& explanation) {
  const std::string buckets =
      explanation.buckets_bytes == 0
          ? ""
          : fmt::format("buckets {} (gradients of all workers), ", bytes_text(explanation.buckets_bytes));
  return fmt::format(
      "memory: {} at the peak: arena {} (values between steps, sharing memory), {}parameters {}, inputs {}, "
      "outputs {}\n",
      bytes_text(explanation.peak_bytes()), bytes_text(explanation.arena_bytes), buckets,
      bytes_text(explanation.parameters_bytes()), bytes_text(explanation.inputs_bytes),
      bytes_text(explanation.outputs_bytes));
}

std::string training_text(const TrainingMemory& training) {
  if (training.updated_bytes == 0) return "";
  return fmt::format(
      "training: updates {} of parameters with {} of gradients and {} of the optimizer's state\n",
      bytes_text(training.updated_bytes), bytes_text(training.gradients_bytes),
      bytes_text(training.states_bytes));
}

std::string calls_text(const std::vector<CallsOfKind>& calls) {
  std::string text = calls.empty() ? "" : "calls:\n";
  for (const CallsOfKind& each : calls)
    text +=
        fmt::format("  {:>4} {} of {} with {}{}\n", each.calls, each.op,
                    each.ranks == 0 ? "all workers" : counted(static_cast<std::size_t>(each.ranks), "worker"),
                    bytes_text(each.bytes),
                    each.ranks == 0 ? "" : fmt::format(", each sends {}", bytes_text(each.sent_bytes())));
  return text;
}

std::string divided_text(const DividedOps& divided) {
  if (divided.mesh.empty()) return "";
  std::string text = fmt::format(
      "mesh: {}; what each worker computes of the ops that read something divided:\n", divided.mesh);
  for (const DividedOps::Entry& entry : divided.entries)
    text += fmt::format(
        "  {:>4} {}: {}\n", entry.count, entry.op,
        entry.layouts.empty() ? "all of it, since it has no rule or cannot be cut so" : entry.layouts);
  return text;
}

std::string traces_text(const std::vector<TraceRecord>& traces) {
  std::string text = fmt::format("traces: {}\n", traces.size());
  std::size_t number = 0;
  for (const TraceRecord& trace : traces) text += fmt::format("  {}. {}\n", ++number, to_string(trace));
  return text;
}

}  // namespace

std::size_t CallsOfKind::sent_bytes() const {
  const auto count = static_cast<std::size_t>(ranks);
  if (count < 2) return 0;
  if (op == "all_gather") return bytes * (count - 1);
  const std::size_t once = bytes * (count - 1) / count;  // reduce_scatter, all_to_all
  return op == "all_reduce" ? 2 * once : once;
}

double Explanation::flops() const {
  return std::accumulate(steps.begin(), steps.end(), 0.0,
                         [](double sum, const PlanStep& step) { return sum + step.flops; });
}

std::size_t Explanation::bytes_moved() const {
  return std::accumulate(steps.begin(), steps.end(), std::size_t{0},
                         [](std::size_t sum, const PlanStep& step) { return sum + step.bytes; });
}

std::size_t Explanation::parameters_bytes() const {
  return std::accumulate(
      parameters.begin(), parameters.end(), std::size_t{0},
      [](std::size_t sum, const auto& parameter) { return sum + parameter.second.size_bytes(); });
}

std::string to_string(const TraceRecord& trace) {
  const auto milliseconds = std::chrono::duration<double, std::milli>(trace.duration).count();
  return fmt::format("{}: {}; {} nodes, {:.1f} ms", trace.signature, trace.reason, trace.nodes, milliseconds);
}

std::string to_string(const Explanation& explanation) {
  return fmt::format("{}({}): a plan of {} steps on {} thread{}\n\n", explanation.name, explanation.inputs,
                     explanation.steps.size(), explanation.threads, explanation.threads == 1 ? "" : "s") +
         steps_text(explanation.steps) + "\n" + parameters_text(explanation) + memory_text(explanation) +
         training_text(explanation.training) + divided_text(explanation.divided) +
         calls_text(explanation.calls) +
         fmt::format("work: {} where ops count it, {} read and written\n", flops_text(explanation.flops()),
                     bytes_text(explanation.bytes_moved())) +
         (explanation.partition.stages.empty() ? "" : to_string(explanation.partition)) +
         traces_text(explanation.traces);
}

namespace {

std::string stage_text(const Stage& part) {
  std::string placed;
  for (const std::string& origin : part.placed) placed += (placed.empty() ? "" : "; ") + origin;
  if (part.nodes == 0 && part.parameters.empty()) return fmt::format("  worker {}: nothing\n", part.rank);
  return fmt::format(
      "  worker {}: {}, {}, {} of {}, {} of activations{}\n", part.rank, counted(part.nodes, "node"),
      flops_text(part.flops), counted(part.parameters.size(), "parameter"), bytes_text(part.parameters_bytes),
      bytes_text(part.activations_bytes), placed.empty() ? "" : fmt::format("\n    {}", placed));
}

std::string value_transfers_text(const std::vector<ValueTransfer>& value_transfers) {
  std::size_t value = 5, type = 4;
  for (const ValueTransfer& value_transfer : value_transfers) {
    value = std::max(value, value_transfer.what.size());
    type = std::max(type, to_string(value_transfer.type).size());
  }
  std::string text = fmt::format("{:>9}  {:>4}  {:>4}  {:<{}}  {:<{}}  {:>10}\n", "message", "from", "to",
                                 "value", value, "type", type, "size");
  for (const ValueTransfer& value_transfer : value_transfers)
    text += fmt::format("{:>9}  {:>4}  {:>4}  {:<{}}  {:<{}}  {:>10}\n", value_transfer.message + 1,
                        value_transfer.from, value_transfer.to, value_transfer.what, value,
                        to_string(value_transfer.type), type, bytes_text(value_transfer.type.size_bytes()));
  return text;
}

}  // namespace

std::size_t Partition::value_transfer_bytes() const {
  return std::accumulate(value_transfers.begin(), value_transfers.end(), std::size_t{0},
                         [](std::size_t sum, const ValueTransfer& value_transfer) {
                           return sum + value_transfer.type.size_bytes();
                         });
}

std::string to_string(const Partition& partition) {
  const std::size_t messages =
      partition.value_transfers.empty() ? 0 : partition.value_transfers.back().message + 1;
  std::string text =
      fmt::format("workers: {}, worker {} has the inputs; {} values cross in {} messages, {}\n",
                  partition.stages.size(), partition.reader, partition.value_transfers.size(), messages,
                  bytes_text(partition.value_transfer_bytes()));
  for (const Stage& part : partition.stages) text += stage_text(part);
  return partition.value_transfers.empty() ? text : text + value_transfers_text(partition.value_transfers);
}

}  // namespace muster::graph
