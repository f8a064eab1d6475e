// Evaluations in a job that recovers: a process that returns is given what they gave before.
#include <fmt/format.h>

#include "muster/train/model.h"
#include "muster/train/recovering_call.h"

namespace muster::train {
namespace {

// Evaluations of a worker by itself are no calls of all: they are told apart from those by the first bit, and
// numbered anew behind each of them.
std::uint64_t number_of_eval(const CallNumbers& calls) {
  return std::uint64_t{1} << 63 | calls.begun << 24 | calls.evals;
}

}  // namespace

Result<MetricValues> Model::eval_alone(const EvalOptions& options, Recovery& recovery) {
  MUSTER_TRY(checkpoint::RunStore * store, recovery.store());
  const std::uint64_t number = number_of_eval(recovery.calls());
  ++recovery.calls().evals;
  if (const auto record = store->finished(number))
    if (auto values = metric_values_from(record->result)) return values;
  MUSTER_TRY(MetricValues values, eval_once(options));
  // What cannot be kept is evaluated again by a process that returns.
  if (auto json = to_json(values)) {
    const auto kept = store->finish_call({.call = number, .kind = "eval", .result = *std::move(json)});
    if (!kept) log::error(fmt::format("the result of an evaluation is not kept: {}", kept.error().message));
  }
  return values;
}

Result<MetricValues> Model::eval_together(const EvalOptions& options, Recovery& recovery) {
  MUSTER_TRY(const auto call, RecoveringCall::begin(recovery, "eval"));
  const auto attempt = [&]() -> Result<MetricValues> {
    bool finished = call->is_finished();
    if (!finished) {
      call->set_memory({.state = checkpoint::Standing::State::fresh});
      MUSTER_TRY(const RecoveringCall::Start start, call->agree());
      finished = start.finished;
    }
    if (finished) {
      MUSTER_TRY(const RecoveringCall::End end, call->end());
      return metric_values_from(end.result);
    }
    MUSTER_TRY(MetricValues values, eval_once(options));
    MUSTER_TRY_VOID(call->finish(std::nullopt, to_json(values).value_or("")));
    return values;
  };
  while (true) {
    Result<MetricValues> values = attempt();
    if (values) return values;
    MUSTER_TRY(const bool again, call->tries_again(values.error()));
    if (!again) return values;
  }
}

}  // namespace muster::train
