#include "muster/train/train_step.h"

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

}  // namespace

TrainStep::TrainStep(const Forward& forward, std::vector<nn::Optimizer*> optimizers)
    : optimizers_(std::move(optimizers)),
      loss_and_gradients_(graph::value_and_grad(
          "train step", [forward](std::span<const nn::Value> batch) -> nn::Values { return forward(batch); },
          {.parameters = updated_by(optimizers_)})),
      reducer_(updated_by(optimizers_), true) {
  require_init("TrainStep").value();
}

TrainStep::TrainStep(nn::Cell& network, nn::Cell& loss_fn, nn::Optimizer& optimizer)
    : TrainStep(loss_of(network, loss_fn), optimizer) {}

Tensor TrainStep::operator()(std::span<const Tensor> batch) {
  const ActivityScope computing(cluster::WorkPhase::computing);
  note_finished();
  const graph::RunContext context = run_context().value();
  const auto outputs = loss_and_gradients_->call(batch, {}, context).value();
  const auto gradients = reducer_.reduce(std::span(outputs).subspan(1)).value();
  auto next = gradients.begin();
  for (nn::Optimizer* const optimizer : optimizers_) {
    const auto end = next + static_cast<std::ptrdiff_t>(optimizer->updated_parameters().size());
    optimizer->call(nn::Values(next, end), context);
    next = end;
  }
  return outputs.front();
}

}  // namespace muster::train
