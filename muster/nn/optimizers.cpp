#include "muster/nn/optimizers.h"

#include <fmt/format.h>

#include <utility>

#include "muster/nn/initializers.h"

namespace muster::nn {
namespace {

ParameterPtr scalar(std::string name, double value) {
  return std::make_shared<graph::Parameter>(std::move(name), graph::TensorType{DType::float32, {}},
                                            constant(value), false);
}

}  // namespace

Optimizer::Optimizer(std::string class_name, std::vector<ParameterPtr> parameters, double learning_rate)
    : Cell(std::move(class_name)),
      updated_(std::move(parameters)),
      learning_rate_(scalar("learning_rate", learning_rate)) {
  insert_param("learning_rate", learning_rate_);
}

void Optimizer::set_learning_rate(double learning_rate) {
  const Result<> set = learning_rate_->set(Tensor::scalar(static_cast<float>(learning_rate)));
  MUSTER_CHECK(set.has_value(), "the learning rate is a float32 scalar");
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
  return made;
}

Value Optimizer::problem(std::span<const Value> gradients) const {
  if (gradients.size() == updated_.size()) return {};
  return Value::failed(Code::invalid_argument,
                       fmt::format("{} updates {} parameters, {} gradients were given", class_name(),
                                   updated_.size(), gradients.size()));
}

SGD::SGD(std::vector<ParameterPtr> parameters, SGDOptions options)
    : Optimizer("SGD", std::move(parameters), options.learning_rate), options_(options) {
  if (options_.momentum == 0) return;
  accumulations_ = make_state("accum", 0);
  started_ = make_state("stat", 1, true);
}

Values SGD::construct(std::span<const Value> gradients) {
  if (Value wrong = problem(gradients); wrong.defined()) return wrong;
  const graph::Attributes attributes{{"momentum", options_.momentum},
                                     {"dampening", options_.dampening},
                                     {"weight_decay", options_.weight_decay},
                                     {"loss_scale", options_.loss_scale},
                                     {"nesterov", options_.nesterov}};
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    std::vector<Value> inputs{updated_parameters()[i], gradients[i], learning_rate()};
    if (!accumulations_.empty()) {
      inputs.emplace_back(accumulations_[i]);
      inputs.emplace_back(started_[i]);
    }
    if (Value updated = graph::apply("sgd", inputs, attributes); updated.is_failed()) return updated;
  }
  return {};
}

Momentum::Momentum(std::vector<ParameterPtr> parameters, MomentumOptions options)
    : Optimizer("Momentum", std::move(parameters), options.learning_rate), options_(options) {
  moments_ = make_state("moments", 0);
}

Values Momentum::construct(std::span<const Value> gradients) {
  if (Value wrong = problem(gradients); wrong.defined()) return wrong;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const ParameterPtr& parameter = updated_parameters()[i];
    const bool decays = parameter->name().find("beta") == std::string::npos &&
                        parameter->name().find("gamma") == std::string::npos;
    const Value updated = graph::apply("momentum", {parameter, gradients[i], learning_rate(), moments_[i]},
                                       {{"momentum", options_.momentum},
                                        {"weight_decay", decays ? options_.weight_decay : 0.0},
                                        {"loss_scale", options_.loss_scale},
                                        {"nesterov", options_.use_nesterov}});
    if (updated.is_failed()) return updated;
  }
  return {};
}

}  // namespace muster::nn
