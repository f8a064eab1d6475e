#include "muster/train/train_step.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "muster/train/activity_scope.h"
#include "muster/train/run_context.h"
#include "muster/train/updates.h"

namespace muster::train {
namespace {

TrainStep::Forward loss_of(nn::Cell& network, nn::Cell& loss_fn) {
  return [&](std::span<const nn::Value> batch) -> nn::Value {
    return loss_fn.call(nn::outputs_and_label(network, batch)).at(0);
  };
}

std::vector<graph::ParameterPtr> updated_by(const std::vector<nn::Optimizer*>& optimizers) {
  std::vector<graph::ParameterPtr> all;
  for (const nn::Optimizer* optimizer : optimizers)
    all.insert(all.end(), optimizer->updated_parameters().begin(), optimizer->updated_parameters().end());
  return all;
}

std::shared_ptr<graph::Function> clipping(std::optional<double> norm) {
  if (!norm) return nullptr;
  if (!(*norm > 0) || !std::isfinite(*norm))
    throw Exception(Code::invalid_argument,
                    fmt::format("TrainStep: clip_norm is a number above 0, not {}", *norm));
  return std::make_shared<graph::Function>(
      "clip gradients", [norm = *norm](std::span<const nn::Value> gradients) -> nn::Values {
        return nn::clip_by_global_norm(gradients, norm);
      });
}

}  // namespace

TrainStep::TrainStep(const Forward& forward, std::vector<nn::Optimizer*> optimizers, TrainStepOptions options)
    : optimizers_(std::move(optimizers)),
      loss_and_gradients_(graph::value_and_grad(
          "train step", [forward](std::span<const nn::Value> batch) -> nn::Values { return forward(batch); },
          {.parameters = updated_by(optimizers_)})),
      clip_(clipping(options.clip_norm)),
      reducer_(updated_by(optimizers_), true) {
  require_init("TrainStep").value();
}

TrainStep::TrainStep(nn::Cell& network, nn::Cell& loss_fn, nn::Optimizer& optimizer, TrainStepOptions options)
    : TrainStep(loss_of(network, loss_fn), optimizer, options) {}

// A worker that has only a part of the gradients cannot know how long all of them are.
Result<std::vector<Tensor>> TrainStep::clipped(std::vector<Tensor> gradients,
                                               const graph::RunContext& context) {
  if (clip_ == nullptr) return gradients;
  for (const graph::ParameterPtr& parameter : updated_by(optimizers_))
    if (parameter->home() || parameter->share())
      return fail(Code::not_provided,
                  fmt::format("TrainStep: clip_norm is of whole networks, and parameter '{}' is divided over "
                              "workers: leave it out",
                              parameter->name()));
  return clip_->call(gradients, {}, context);
}

Tensor TrainStep::operator()(std::span<const Tensor> batch) {
  const ActivityScope computing(cluster::WorkPhase::computing);
  note_finished();
  const graph::RunContext context = run_context().value();
  const auto outputs = loss_and_gradients_->call(batch, {}, context).value();
  const auto gradients = clipped(reducer_.reduce(std::span(outputs).subspan(1)).value(), context).value();
  auto next = gradients.begin();
  for (nn::Optimizer* const optimizer : optimizers_) {
    const auto end = next + static_cast<std::ptrdiff_t>(optimizer->updated_parameters().size());
    optimizer->call(nn::Values(next, end), context);
    next = end;
  }
  return outputs.front();
}

}  // namespace muster::train
