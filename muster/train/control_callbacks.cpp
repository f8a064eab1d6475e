#include "muster/train/control_callbacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "muster/train/aborted_step.h"
#include "muster/train/context.h"
#include "muster/train/front_end.h"
#include "muster/train/job.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

Result<double> learning_rate_of(const CallbackContext& context) {
  if (context.optimizer == nullptr)
    return fail(Code::invalid_argument, "there is no optimizer whose learning rate could be changed");
  const auto& rate = context.optimizer->learning_rate();
  if (!context.optimizer->has_one_rate() || rate == nullptr || rate->shape().rank() != 0)
    return fail(Code::invalid_argument,
                "the learning rate is a schedule or differs by group, so it cannot be changed");
  return static_cast<double>(*rate->materialize(seed()).data<float>());
}

// What another worker has, that one keeps.
std::vector<graph::ParameterPtr> parameters_here(const CallbackContext& context) {
  std::vector<graph::ParameterPtr> parameters = context.train_network->parameters();
  std::erase_if(parameters, [](const graph::ParameterPtr& p) { return p->absence() != nullptr; });
  return parameters;
}

// Servers keep no rows of an earlier epoch, and nothing sets those that they have.
Result<> check_restorable(const CallbackContext& context) {
  for (const graph::ParameterPtr& parameter : parameters_here(context))
    if (parameter->served_rows())
      return fail(Code::not_provided,
                  fmt::format("EarlyStopping(restore_best_weights=True): the rows of table '{}' are on "
                              "parameter servers and cannot be put back; leave it out, and load the best "
                              "checkpoint of ModelCheckpoint into a new training",
                              parameter->name()));
  return {};
}

// In a data-parallel job the mean over the workers, each of which has seen rows of its own: they have to
// decide alike. What all have is left as it is.
Result<double> over_workers(double value) {
  Session* const session = Session::current();
  if (session == nullptr || session->membership().world_size() == 1 ||
      context().parallel_mode != ParallelMode::data_parallel)
    return value;
  std::vector<double> values(session->membership().world_size());
  MUSTER_TRY_VOID(call_in_body([&] {
    return session->recovery().explicit_collective(
        "the mean over all workers of what EarlyStopping or ReduceLROnPlateau follows", {},
        [&](Communicator& workers) { return workers.all_gather(&value, values.data(), sizeof value); });
  }));
  if (step_is_aborted() || std::ranges::count(values, value) == std::ssize(values)) return value;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

Result<MonitorMode> monitor_mode_from_string(std::string_view name) {
  if (name == "auto") return MonitorMode::automatic;
  if (name == "min") return MonitorMode::min;
  if (name == "max") return MonitorMode::max;
  return fail(Code::invalid_argument,
              fmt::format("mode '{}' is not known; choose 'auto', 'min' or 'max'", name));
}

Best::Best(std::string monitor, MonitorMode mode, double min_delta)
    : monitor_(std::move(monitor)),
      greater_is_better_(mode == MonitorMode::max ||
                         (mode == MonitorMode::automatic && monitor_.find("acc") != std::string::npos)),
      min_delta_(std::fabs(min_delta)) {}

bool Best::is_better(double value, double than) const {
  return greater_is_better_ ? value > than + min_delta_ : value < than - min_delta_;
}

bool Best::improves(double value) {
  if (best_ && !is_better(value, *best_)) return false;
  best_ = value;
  return true;
}

Result<std::optional<double>> monitored_after_epoch(const CallbackContext& context,
                                                    const std::string& monitor) {
  const bool evaluated = !context.eval_results.empty();
  if (!evaluated && context.evaluates && monitor != "loss") return std::nullopt;
  MUSTER_TRY(const double value, monitored(context, monitor));
  MUSTER_TRY(const double mean, over_workers(value));
  return mean;
}

// ---- EarlyStopping ----------------------------------------------------------------------------------------

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(std::move(options)), best_(options_.monitor, options_.mode, options_.min_delta) {}

Result<> EarlyStopping::on_train_begin(CallbackContext& context) {
  if (options_.restore_best_weights) MUSTER_TRY_VOID(check_restorable(context));
  waited_ = stopped_epoch_ = 0;
  best_.reset();
  weights_.clear();
  return {};
}

Result<> EarlyStopping::on_train_epoch_end(CallbackContext& context) {
  MUSTER_TRY(const std::optional<double> value, monitored_after_epoch(context, options_.monitor));
  if (!value) return {};
  if (options_.restore_best_weights && weights_.empty()) keep_weights(context);
  ++waited_;
  if (best_.improves(*value)) {
    if (options_.restore_best_weights) keep_weights(context);
    if (!options_.baseline || best_.is_better(*value, *options_.baseline)) waited_ = 0;
  }
  if (waited_ < options_.patience || waited_ == 0) return {};
  stopped_epoch_ = context.cur_epoch_num;
  context.request_stop();
  return options_.restore_best_weights ? restore_weights(context) : Result<>{};
}

Result<> EarlyStopping::on_train_end(CallbackContext&) {
  if (stopped_epoch_ > 0 && options_.verbose)
    print_line(fmt::format("Epoch {}: early stopping", stopped_epoch_));
  return {};
}

void EarlyStopping::keep_weights(const CallbackContext& context) {
  weights_.clear();
  for (const graph::ParameterPtr& parameter : parameters_here(context))
    weights_.push_back({parameter->name(), parameter->materialize(seed()).clone()});
}

Result<> EarlyStopping::restore_weights(const CallbackContext& context) const {
  if (options_.verbose)
    print_line(fmt::format("Epoch {}: back to the weights of the best epoch", context.cur_epoch_num));
  const std::vector<graph::ParameterPtr> parameters = parameters_here(context);
  if (parameters.size() != weights_.size())
    return fail(Code::invalid_argument,
                "EarlyStopping: the network has other parameters than in its best epoch");
  for (std::size_t i = 0; i < weights_.size(); ++i) MUSTER_TRY_VOID(parameters[i]->set(weights_[i].value));
  return {};
}

Result<State> EarlyStopping::state() {
  return State{.text = StateValues()
                           .set_number_or_none("best", best_.best())
                           .set("waited", waited_)
                           .set("stopped_epoch", stopped_epoch_)
                           .to_json(),
               .tensors = weights_};
}

Result<> EarlyStopping::load_state(const State& state) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(state.text));
  MUSTER_TRY(const std::optional<double> best, values.number_or_none("best"));
  MUSTER_TRY(waited_, values.integer("waited"));
  MUSTER_TRY(stopped_epoch_, values.integer("stopped_epoch"));
  best_.restore(best);
  weights_ = state.tensors;
  return {};
}

// ---- ReduceLROnPlateau ------------------------------------------------------------------------------------

ReduceLROnPlateau::ReduceLROnPlateau(ReduceLROnPlateauOptions options)
    : options_(std::move(options)), best_(options_.monitor, options_.mode, options_.min_delta) {}

Result<> ReduceLROnPlateau::on_train_begin(CallbackContext&) {
  if (options_.factor >= 1 || options_.factor < 0)
    return fail(Code::invalid_argument,
                fmt::format("ReduceLROnPlateau: factor is {}, it is in [0, 1)", options_.factor));
  waited_ = cooling_ = 0;
  best_.reset();
  return {};
}

Result<> ReduceLROnPlateau::on_train_epoch_end(CallbackContext& context) {
  MUSTER_TRY(const std::optional<double> value, monitored_after_epoch(context, options_.monitor));
  if (!value) return {};
  if (cooling_ > 0) {
    --cooling_;
    waited_ = 0;
  }
  if (best_.improves(*value)) {
    waited_ = 0;
    return {};
  }
  if (cooling_ > 0 || ++waited_ < options_.patience) return {};
  return reduce(context);
}

Result<> ReduceLROnPlateau::reduce(const CallbackContext& context) {
  MUSTER_TRY(const double rate, learning_rate_of(context));
  waited_ = 0;
  cooling_ = options_.cooldown;
  if (rate <= options_.min_lr) return {};
  const double reduced = std::max(rate * options_.factor, options_.min_lr);
  MUSTER_TRY_VOID(context.optimizer->set_learning_rate(reduced));
  if (options_.verbose)
    print_line(fmt::format("Epoch {}: the learning rate is reduced to {}", context.cur_epoch_num,
                           number_text(static_cast<float>(reduced))));
  return {};
}

// The learning rate itself is a parameter of the optimizer.
Result<State> ReduceLROnPlateau::state() {
  return State{.text = StateValues()
                           .set_number_or_none("best", best_.best())
                           .set("waited", waited_)
                           .set("cooling", cooling_)
                           .to_json()};
}

Result<> ReduceLROnPlateau::load_state(const State& state) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(state.text));
  MUSTER_TRY(const std::optional<double> best, values.number_or_none("best"));
  MUSTER_TRY(waited_, values.integer("waited"));
  MUSTER_TRY(cooling_, values.integer("cooling"));
  best_.restore(best);
  return {};
}

// ---- LearningRateScheduler --------------------------------------------------------------------------------

Result<> LearningRateScheduler::on_train_step_end(CallbackContext& context) {
  MUSTER_TRY(const double rate, learning_rate_of(context));
  MUSTER_TRY(const double next, function_(rate, context.cur_step_num));
  if (next != rate) MUSTER_TRY_VOID(context.optimizer->set_learning_rate(next));
  return {};
}

}  // namespace muster::train
