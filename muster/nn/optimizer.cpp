#include "muster/nn/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "muster/graph/served.h"
#include "muster/nn/arguments.h"
#include "muster/nn/initializers.h"
#include "muster/nn/ops.h"
#include "muster/nn/process.h"
#include "muster/nn/values.h"

namespace muster::nn {
namespace {

ParameterPtr scalar(std::string name, double value) {
  return std::make_shared<graph::Parameter>(std::move(name), graph::TensorType{DType::float32, {}},
                                            constant(value), false);
}

// The only element of `value` as float32 ().
Value as_scalar(const Value& value, std::string_view what) {
  if (!value.defined()) return value;
  if (value.shape().elements() != 1)
    throw Exception(Code::invalid_argument,
                    fmt::format("{} must give one number, not {}", what, muster::to_string(value.shape())));
  const Value shaped = value.shape().rank() == 0 ? value : ops::reshape(value, {});
  return value.dtype() == DType::float32 ? shaped : ops::cast(shaped, DType::float32);
}

bool is_left_out_of_decay(const graph::Parameter& parameter) {
  return parameter.name().find("beta") != std::string::npos ||
         parameter.name().find("gamma") != std::string::npos;
}

// The mean over all axes but the first, taken out.
Value without_means(const Value& gradient) {
  const std::int64_t rows = gradient.shape()[0];
  const std::int64_t columns = gradient.shape().elements() / std::max<std::int64_t>(rows, 1);
  const Value matrix = ops::reshape(gradient, {rows, columns});
  const Value weights = filled_like(gradient, {columns, 1}, 1.0 / static_cast<double>(columns));
  return ops::reshape(ops::sub(matrix, ops::matmul(matrix, weights)), gradient.shape());
}

Result<> check_rate(std::string_view owner, const LearningRate& learning_rate) {
  if (const auto* number = std::get_if<double>(&learning_rate.rate()))
    return require_not_negative(owner, "learning_rate", *number);
  if (const auto* list = std::get_if<Rates>(&learning_rate.rate())) {
    if (list->empty())
      return fail(Code::invalid_argument, fmt::format("{}: learning_rate is an empty list", owner));
    return {};
  }
  const auto& schedule = std::get<std::shared_ptr<LearningRateSchedule>>(learning_rate.rate());
  if (schedule == nullptr)
    return fail(Code::invalid_argument, fmt::format("{}: learning_rate is no schedule", owner));
  return {};
}

Result<> check_decay(std::string_view owner, const WeightDecay& decay) {
  return decay.cell() ? Result<>() : require_not_negative(owner, "weight_decay", decay.decay());
}

Exception without_rule(const Optimizer& optimizer, const graph::Parameter& parameter) {
  return {Code::not_provided,
          fmt::format("{} has no rule for parameter '{}', which lives on parameter servers: "
                      "choose SGD, Momentum, Adagrad, Adam or FTRL, or leave out "
                      "set_param_ps for it",
                      optimizer.class_name(), parameter.name())};
}

// The part of a step that parameter servers make.
class ServedStep {
 public:
  void add(const Optimizer& optimizer, const ParameterPtr& parameter, const Value& gradient,
           const Value& rate) {
    const auto number = graph::served_number(*parameter);
    if (!number) return;
    const auto& rule = graph::served_parameter(*number).rule;
    if (!rule || rule->optimizer != optimizer.class_name()) throw without_rule(optimizer, *parameter);
    parameters_.push_back(parameter);
    gradients_.push_back(gradient);
    rates_.push_back(rate);
  }
  void make(const Optimizer& optimizer) const {
    if (!parameters_.empty()) graph::update_served(optimizer.global_step(), parameters_, gradients_, rates_);
  }

 private:
  std::vector<ParameterPtr> parameters_;
  Values gradients_, rates_;
};

}  // namespace

void pause_updates(bool paused) { process().updates_are_paused = paused; }

Optimizer::Optimizer(std::string class_name, const ParameterGroups& parameters, const Settings& settings)
    : Cell(std::move(class_name)),
      grouped_(parameters.grouped()),
      decay_(settings.weight_decay),
      loss_scale_(settings.loss_scale) {
  set_auto_prefix(false);
  check_settings(parameters, settings);
  add_rate("learning_rate", settings.learning_rate);
  std::size_t number = 0;
  for (const ParameterGroup& group : parameters.groups()) {
    const std::string name = fmt::format("learning_rate_group_{}", number++);
    if (group.learning_rate) add_rate(name, *group.learning_rate);
    add_group(group, group.learning_rate ? rates_.size() - 1 : 0, settings.weight_decay);
  }
  if (!parameters.order().empty()) reorder(parameters.order());
  global_step_ = std::make_shared<graph::Parameter>("global_step", Tensor::zeros(DType::int32, {1}), false);
  insert_param("global_step", global_step_);
}

void Optimizer::check_settings(const ParameterGroups& parameters, const Settings& settings) {
  check_rate(class_name(), settings.learning_rate).value();
  check_decay(class_name(), settings.weight_decay).value();
  require_positive(class_name(), "loss_scale", settings.loss_scale).value();
  std::vector<const graph::Parameter*> known;
  for (const ParameterGroup& group : parameters.groups()) {
    if (group.parameters.empty())
      throw Exception(Code::invalid_argument,
                      fmt::format("{}: there are no parameters to update{}: give those of a network, "
                                  "trainable_params()",
                                  class_name(), parameters.grouped() ? " in one of the groups" : ""));
    if (group.learning_rate) check_rate(class_name(), *group.learning_rate).value();
    if (group.weight_decay) check_decay(class_name(), *group.weight_decay).value();
    for (const ParameterPtr& parameter : group.parameters) {
      if (parameter == nullptr)
        throw Exception(Code::invalid_argument, fmt::format("{}: a parameter is null", class_name()));
      if (std::find(known.begin(), known.end(), parameter.get()) != known.end())
        throw Exception(Code::invalid_argument,
                        fmt::format("{}: parameter '{}' was given twice", class_name(), parameter->name()));
      const auto has_its_name = [&](const graph::Parameter* other) {
        return !parameter->name().empty() && other->name() == parameter->name();
      };
      if (std::ranges::any_of(known, has_its_name))
        throw Exception(
            Code::invalid_argument,
            fmt::format("{}: two parameters have the name '{}', and so would their states: give one another "
                        "name, or make both attributes of one cell",
                        class_name(), parameter->name()));
      known.push_back(parameter.get());
    }
  }
}

void Optimizer::add_rate(const std::string& name, const LearningRate& learning_rate) {
  Rate made;
  if (const auto* number = std::get_if<double>(&learning_rate.rate())) {
    made.parameter = scalar(name, *number);
  } else if (const auto* list = std::get_if<Rates>(&learning_rate.rate())) {
    Tensor rates(DType::float32, {static_cast<std::int64_t>(list->size())});
    std::transform(list->begin(), list->end(), rates.data<float>(),
                   [](double rate) { return static_cast<float>(rate); });
    made.parameter = std::make_shared<graph::Parameter>(name, rates, false);
    made.is_list = true;
  } else {
    made.schedule = std::get<std::shared_ptr<LearningRateSchedule>>(learning_rate.rate());
  }
  if (made.parameter) insert_param(name, made.parameter);
  if (made.schedule) insert_child(name, made.schedule);
  rates_.push_back(std::move(made));
}

void Optimizer::add_group(const ParameterGroup& group, std::size_t rate, const WeightDecay& otherwise) {
  const WeightDecay& decay = group.weight_decay ? *group.weight_decay : otherwise;
  if (decay.cell()) insert_child(fmt::format("weight_decay_{}", updated_.size()), decay.cell());
  for (const ParameterPtr& parameter : group.parameters) {
    updated_.push_back(parameter);
    const bool decays = grouped_ || !is_left_out_of_decay(*parameter);
    rules_.push_back({.rate = rate,
                      .decay = decays ? decay : WeightDecay(0.0),
                      .has_common_decay = decays && !group.weight_decay,
                      .centralizes = group.grad_centralization});
  }
}

void Optimizer::reorder(const std::vector<ParameterPtr>& order) {
  std::vector<Rule> rules;
  for (const ParameterPtr& parameter : order) {
    const auto found = std::find(updated_.begin(), updated_.end(), parameter);
    if (found == updated_.end())
      throw Exception(Code::invalid_argument,
                      fmt::format("{}: order_params has parameter '{}', which no group has", class_name(),
                                  parameter->name()));
    rules.push_back(rules_[static_cast<std::size_t>(found - updated_.begin())]);
  }
  if (order.size() != updated_.size())
    throw Exception(Code::invalid_argument,
                    fmt::format("{}: order_params has {} parameters, the groups have {}", class_name(),
                                order.size(), updated_.size()));
  updated_ = order;
  rules_ = std::move(rules);
}

std::string Optimizer::settings() const {
  std::string rate = rates_.size() > 1 ? "one for each group" : "one for each step";
  if (rates_.size() == 1 && schedule() != nullptr)
    rate = schedule()->class_name();
  else if (rates_.size() == 1 && !rates_[0].is_list)
    rate = fmt::format("{:g}", learning_rate()->materialize(0).item<float>());
  return fmt::format("learning_rate={}, {} parameter{}", rate, updated_.size(),
                     updated_.size() == 1 ? "" : "s");
}

Result<> Optimizer::set_learning_rate(double learning_rate) {
  MUSTER_TRY_VOID(require_not_negative(class_name(), "learning_rate", learning_rate));
  if (rates_.size() == 1 && rates_[0].parameter != nullptr && !rates_[0].is_list)
    return rates_[0].parameter->set(Tensor::scalar(static_cast<float>(learning_rate)));
  return fail(
      Code::invalid_argument,
      fmt::format("{}: the learning rate is not one number but {}, so it cannot be set to {}", class_name(),
                  rates_.size() > 1 ? "one for each group" : "one for each step", learning_rate));
}

Result<> Optimizer::set_weight_decay(double decay) {
  MUSTER_TRY_VOID(require_not_negative(class_name(), "weight_decay", decay));
  if (std::ranges::none_of(rules_, &Rule::has_common_decay))
    return fail(
        Code::invalid_argument,
        fmt::format("{}: weight_decay is set to {} for no parameter: each one's group has its own, or "
                    "it is left out by its name (beta, gamma); give the decay where it is made",
                    class_name(), decay));
  decay_ = decay;
  for (Rule& rule : rules_)
    if (rule.has_common_decay) rule.decay = decay;
  touch("'weight_decay' was set");
  return {};
}

std::vector<ParameterPtr> Optimizer::make_state(std::string_view prefix, double initial_value,
                                                bool is_scalar) {
  std::vector<ParameterPtr> made;
  for (const ParameterPtr& parameter : updated_) {
    std::string name = fmt::format("{}.{}", prefix, parameter->name());
    made.push_back(is_scalar ? scalar(name, initial_value)
                             : std::make_shared<graph::Parameter>(name, parameter->type(),
                                                                  constant(initial_value), false));
    insert_param(name, made.back());
  }
  if (!is_scalar) states_.push_back(made);
  return made;
}

std::vector<ParameterPtr> Optimizer::states_of(std::size_t index) const {
  std::vector<ParameterPtr> found;
  for (const std::vector<ParameterPtr>& state : states_) found.push_back(state.at(index));
  return found;
}

void Optimizer::require_gradients(std::span<const Value> gradients) const {
  if (gradients.size() == updated_.size()) return;
  throw Exception(Code::invalid_argument, fmt::format("{} updates {} parameters, {} gradients were given",
                                                      class_name(), updated_.size(), gradients.size()));
}

// ---- Rates, decay, scale ----------------------------------------------------------------------------------

Value Optimizer::current(const Rate& rate) const {
  const Value step = global_step_;
  if (rate.is_list) return graph::apply("listed_rate", {rate.parameter, step});
  if (rate.parameter) return rate.parameter;
  const Values made = rate.schedule->call({&step, 1});
  return as_scalar(made.empty() ? Value() : made[0], rate.schedule->description());
}

Value Optimizer::rate_of(std::size_t index) const { return current(rates_.at(rules_.at(index).rate)); }

Value Optimizer::decay_of(std::size_t index) const {
  const WeightDecay& decay = rules_.at(index).decay;
  if (decay.cell()) {
    const Value step = global_step_;
    const Values made = decay.cell()->call({&step, 1});
    return as_scalar(made.empty() ? Value() : made[0], decay.cell()->description());
  }
  return decay.decay() > 0 ? number_like(updated_[index], decay.decay()) : Value();
}

// The gradient is still scaled, so the decay is scaled too.
Value Optimizer::with_decay(std::size_t index, const Value& gradient) const {
  const Value decay = decay_of(index);
  if (!decay.defined()) return gradient;
  const Value weight = updated_[index];
  const Value strength = ops::cast(ops::mul(decay, number_like(decay, loss_scale_)), weight.dtype());
  return ops::add(gradient, ops::mul(weight, strength));
}

Values Optimizer::decayed(std::span<const Value> gradients) const {
  require_gradients(gradients);
  Values made;
  for (std::size_t i = 0; i < gradients.size(); ++i) made.push_back(with_decay(i, gradients[i]));
  return made;
}

Value Optimizer::centralized(std::size_t index, const Value& gradient) const {
  if (!rules_[index].centralizes || !gradient.defined()) return gradient;
  const Shape& shape = gradient.shape();
  return shape.rank() >= 2 && shape[1] % 16 == 0 ? without_means(gradient) : gradient;
}

Values Optimizer::centralized(std::span<const Value> gradients) const {
  require_gradients(gradients);
  Values made;
  for (std::size_t i = 0; i < gradients.size(); ++i) made.push_back(centralized(i, gradients[i]));
  return made;
}

Values Optimizer::unscaled(std::span<const Value> gradients) const {
  Values made(gradients.begin(), gradients.end());
  if (loss_scale_ == 1) return made;
  for (Value& gradient : made) gradient = ops::mul(gradient, number_like(gradient, 1 / loss_scale_));
  return made;
}

void Optimizer::require_served_rules() const {
  for (const ParameterPtr& parameter : updated_)
    if (const auto number = graph::served_number(*parameter);
        number && !graph::served_parameter(*number).rule)
      throw without_rule(*this, *parameter);
}

void Optimizer::end_own_construct() const {
  require_served_rules();
  if (const UpdateObserver tell = process().update_observer) tell(*this, false);
}

void set_update_observer(UpdateObserver observer) { process().update_observer = observer; }

Value Optimizer::count_step() const {
  if (const UpdateObserver tell = process().update_observer) tell(*this, true);
  const Value one =
      graph::apply("fill", std::span<const Value>{},
                   {{"dtype", DType::int32}, {"shape", std::vector<std::int64_t>{1}}, {"value", 1.0}});
  return graph::apply("assign_add", {global_step_, one});
}

// ---- A step -----------------------------------------------------------------------------------------------

// Decay that is a number and gradients that are not centralized are the formula's work: it reads all once.
Optimizer::Update Optimizer::prepare(std::size_t index, const Value& gradient, bool is_prepared) const {
  const Rule& rule = rules_[index];
  Update made{.gradient = gradient, .learning_rate = {}};
  if (is_prepared) {
    made.gradient = centralized(index, gradient);
    return made;
  }
  made.loss_scale = loss_scale_;
  const bool decay_changes = rule.decay.cell() != nullptr;
  if (decays_gradient() && (decay_changes || rule.centralizes)) {
    made.gradient = with_decay(index, gradient);
  } else {
    made.weight_decay = rule.decay.decay();
    if (decay_changes) made.changing_decay = decay_of(index);
  }
  made.gradient = centralized(index, made.gradient);
  return made;
}

Optimizer::Update Optimizer::update_of_table(std::size_t index) const {
  const Rule& rule = rules_[index];
  if (rule.decay.cell() != nullptr || rule.centralizes)
    throw Exception(
        Code::not_provided,
        fmt::format("{}: table '{}' lives on parameter servers: its weight decay is one number, and "
                    "its gradients are not centralized",
                    class_name(), updated_[index]->name()));
  return {.gradient = {}, .learning_rate = {}, .weight_decay = rule.decay.decay(), .loss_scale = loss_scale_};
}

Values Optimizer::run(std::span<const Value> gradients, bool are_prepared) {
  require_gradients(gradients);
  std::vector<Value> rates;
  for (const Rate& rate : rates_) rates.push_back(current(rate));
  ServedStep served;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Update made = prepare(i, gradients[i], are_prepared);
    made.learning_rate = rates[rules_[i].rate];
    update(i, made);
    served.add(*this, updated_[i], made.gradient, made.learning_rate);
  }
  served.make(*this);
  count_step();
  return {};
}

bool Optimizer::is_paused() const { return process().updates_are_paused; }

Values Optimizer::construct(std::span<const Value> gradients) { return run(gradients, false); }
Values Optimizer::apply_prepared(std::span<const Value> gradients) { return run(gradients, true); }

void Optimizer::update(std::size_t, const Update&) {
  throw Exception(Code::invalid_argument,
                  fmt::format("{} defines no construct, so it cannot be called", class_name()));
}

}  // namespace muster::nn
