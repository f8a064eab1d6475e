#include "muster/train/train_step.h"

#include "muster/train/run_context.h"
#include "muster/train/updates.h"

namespace muster::train {
namespace {

TrainStep::Forward loss_of(nn::Cell& network, nn::Cell& loss_fn) {
  return [&](std::span<const nn::Value> batch) -> nn::Value {
    return loss_fn.call(nn::outputs_and_label(network, batch)).at(0);
  };
}

}  // namespace

TrainStep::TrainStep(const Forward& forward, nn::Optimizer& optimizer)
    : optimizer_(optimizer),
      loss_and_gradients_(graph::value_and_grad(
          "train step", [forward](std::span<const nn::Value> batch) -> nn::Values { return forward(batch); },
          {.parameters = optimizer.updated_parameters()})),
      reducer_(optimizer.updated_parameters(), true) {
  require_init("TrainStep").value();
}

TrainStep::TrainStep(nn::Cell& network, nn::Cell& loss_fn, nn::Optimizer& optimizer)
    : TrainStep(loss_of(network, loss_fn), optimizer) {}

Tensor TrainStep::operator()(std::span<const Tensor> batch) {
  const graph::RunContext context = run_context().value();
  const auto outputs = loss_and_gradients_->call(batch, {}, context).value();
  const auto gradients = reducer_.reduce(std::span(outputs).subspan(1)).value();
  optimizer_.call(nn::Values(gradients.begin(), gradients.end()), context);
  return outputs.front();
}

}  // namespace muster::train
