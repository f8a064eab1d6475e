#include "muster/nn/optimizers.h"

#include <fmt/format.h>

#include <utility>

#include "muster/nn/arguments.h"
#include "muster/nn/ops.h"

namespace muster::nn {
namespace {

using graph::Attributes;

Result<> require_open_unit(std::string_view owner, std::string_view name, double given) {
  if (given > 0 && given < 1) return {};
  return refuse_argument(owner, name, "in (0, 1)", given);
}

template <class Options>
Result<> check_adam(std::string_view owner, const Options& options) {
  MUSTER_TRY_VOID(require_open_unit(owner, "beta1", options.beta1));
  MUSTER_TRY_VOID(require_open_unit(owner, "beta2", options.beta2));
  return require_positive(owner, "eps", options.eps);
}

}  // namespace

// ---- SGD, Momentum ----------------------------------------------------------------------------------------

SGD::SGD(const ParameterGroups& parameters, SGDOptions options)
    : Optimizer("SGD", parameters, {options.learning_rate, options.weight_decay, options.loss_scale}),
      options_(std::move(options)) {
  require_not_negative("SGD", "momentum", options_.momentum).value();
  require_not_negative("SGD", "dampening", options_.dampening).value();
  if (options_.nesterov && !(options_.momentum > 0 && options_.dampening == 0))
    throw Exception(Code::invalid_argument,
                    fmt::format("SGD: nesterov needs momentum above 0 and dampening 0, not {} and {}",
                                options_.momentum, options_.dampening));
  if (options_.momentum == 0) return;
  accumulations_ = make_state("accum", 0);
  started_ = make_state("stat", 1, true);
}

void SGD::update(std::size_t index, const Update& update) {
  std::vector<Value> inputs{updated_parameters()[index], update.gradient, update.learning_rate};
  if (!accumulations_.empty()) {
    inputs.emplace_back(accumulations_[index]);
    inputs.emplace_back(started_[index]);
  }
  graph::apply("sgd", inputs,
               {{"momentum", options_.momentum},
                {"dampening", options_.dampening},
                {"weight_decay", update.weight_decay},
                {"loss_scale", update.loss_scale},
                {"nesterov", options_.nesterov}});
}

Momentum::Momentum(const ParameterGroups& parameters, MomentumOptions options)
    : Optimizer("Momentum", parameters, {options.learning_rate, options.weight_decay, options.loss_scale}),
      options_(std::move(options)) {
  require_not_negative("Momentum", "momentum", options_.momentum).value();
  moments_ = make_state("moments", 0);
}

void Momentum::update(std::size_t index, const Update& update) {
  graph::apply("momentum",
               {updated_parameters()[index], update.gradient, update.learning_rate, moments_[index]},
               {{"momentum", options_.momentum},
                {"weight_decay", update.weight_decay},
                {"loss_scale", update.loss_scale},
                {"nesterov", options_.use_nesterov}});
}

// ---- Adam -------------------------------------------------------------------------------------------------

Adam::Adam(const ParameterGroups& parameters, AdamOptions options)
    : Optimizer("Adam", parameters, {options.learning_rate, options.weight_decay, options.loss_scale}),
      options_(std::move(options)) {
  check_adam("Adam", options_).value();
  means_ = make_state("moment1", 0);
  squares_ = make_state("moment2", 0);
  if (options_.use_amsgrad) greatest_ = make_state("vhat", 0);
}

void Adam::update(std::size_t index, const Update& update) {
  std::vector<Value> inputs{updated_parameters()[index],
                            update.gradient,
                            update.learning_rate,
                            means_[index],
                            squares_[index],
                            global_step()};
  if (!greatest_.empty()) inputs.emplace_back(greatest_[index]);
  graph::apply("adam", inputs,
               {{"beta1", options_.beta1},
                {"beta2", options_.beta2},
                {"eps", options_.eps},
                {"nesterov", options_.use_nesterov},
                {"weight_decay", update.weight_decay},
                {"loss_scale", update.loss_scale}});
}

AdamWeightDecay::AdamWeightDecay(const ParameterGroups& parameters, AdamWeightDecayOptions options)
    : Optimizer("AdamWeightDecay", parameters, {options.learning_rate, options.weight_decay, 1.0}),
      options_(std::move(options)) {
  check_adam("AdamWeightDecay", options_).value();
  means_ = make_state("adam_m", 0);
  squares_ = make_state("adam_v", 0);
}

void AdamWeightDecay::update(std::size_t index, const Update& update) {
  const Value weight = updated_parameters()[index];
  if (update.changing_decay.defined()) {
    // The step does not look at the weight, so the decay may come first.
    const Value part = ops::cast(ops::mul(update.learning_rate, update.changing_decay), weight.dtype());
    const Value decayed = graph::apply("assign", {weight, ops::sub(weight, ops::mul(weight, part))});
  }
  graph::apply("adam_weight_decay",
               {weight, update.gradient, update.learning_rate, means_[index], squares_[index]},
               {{"beta1", options_.beta1},
                {"beta2", options_.beta2},
                {"eps", options_.eps},
                {"weight_decay", update.weight_decay},
                {"loss_scale", update.loss_scale}});
}

// ---- RMSProp, Adagrad -------------------------------------------------------------------------------------

RMSProp::RMSProp(const ParameterGroups& parameters, RMSPropOptions options)
    : Optimizer("RMSProp", parameters, {options.learning_rate, options.weight_decay, options.loss_scale}),
      options_(std::move(options)) {
  require_not_negative("RMSProp", "decay", options_.decay).value();
  require_not_negative("RMSProp", "momentum", options_.momentum).value();
  require_positive("RMSProp", "epsilon", options_.epsilon).value();
  if (options_.centered) means_ = make_state("mean_grad", 0);
  squares_ = make_state("mean_square", 1);
  moments_ = make_state("moment", 0);
}

void RMSProp::update(std::size_t index, const Update& update) {
  std::vector<Value> inputs{updated_parameters()[index], update.gradient, update.learning_rate,
                            squares_[index], moments_[index]};
  if (!means_.empty()) inputs.emplace_back(means_[index]);
  graph::apply("rms_prop", inputs,
               {{"decay", options_.decay},
                {"momentum", options_.momentum},
                {"eps", options_.epsilon},
                {"weight_decay", update.weight_decay},
                {"loss_scale", update.loss_scale}});
}

Adagrad::Adagrad(const ParameterGroups& parameters, AdagradOptions options)
    : Optimizer("Adagrad", parameters, {options.learning_rate, options.weight_decay, options.loss_scale}),
      options_(std::move(options)) {
  require_not_negative("Adagrad", "accum", options_.accum).value();
  sums_ = make_state("accum", options_.accum);
}

void Adagrad::update(std::size_t index, const Update& update) {
  graph::apply("adagrad", {updated_parameters()[index], update.gradient, update.learning_rate, sums_[index]},
               {{"update_slots", options_.update_slots},
                {"weight_decay", update.weight_decay},
                {"loss_scale", update.loss_scale}});
}

// ---- LARS -------------------------------------------------------------------------------------------------

LARS::LARS(std::shared_ptr<Optimizer> optimizer, LARSOptions options)
    : Optimizer("LARS", optimizer->updated_parameters(), {}),
      optimizer_(std::move(optimizer)),
      options_(std::move(options)) {
  require_positive("LARS", "epsilon", options_.epsilon).value();
  require_positive("LARS", "coefficient", options_.coefficient).value();
  rules_ = optimizer_->rules_;
  rates_ = optimizer_->rates_;
  global_step_ = optimizer_->global_step_;
  remove("learning_rate");
  remove("global_step");
  insert_child("optimizer", optimizer_);
  for (std::size_t i = 0; i < updated_.size(); ++i) {
    const std::string& name = updated_[i]->name();
    scales_.push_back(options_.lars_filter ? options_.lars_filter(*updated_[i])
                                           : name.find("LayerNorm") == std::string::npos &&
                                                 name.find("bias") == std::string::npos);
    if (rules_[i].decay.cell())
      throw Exception(Code::not_provided, "LARS: a weight decay that changes with the step is not provided");
  }
  options_.lars_filter = {};  // it may hold what must not live as long as this
}

Values LARS::construct(std::span<const Value> gradients) {
  require_gradients(gradients);
  graph::watch(*optimizer_);
  Values scaled = optimizer_->unscaled(gradients);
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    if (!scales_[i]) continue;
    scaled[i] = graph::apply("lars", {updated_[i], scaled[i], rate_of(i)},
                             {{"coefficient", options_.coefficient},
                              {"eps", options_.epsilon},
                              {"use_clip", options_.use_clip},
                              {"weight_decay", rules_[i].decay.decay()}});
  }
  return optimizer_->apply_prepared(scaled);
}

}  // namespace muster::nn
