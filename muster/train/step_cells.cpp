#include "muster/train/step_cells.h"

#include <fmt/format.h>

#include <utility>

namespace muster::train {
namespace {

using nn::Value;
using nn::Values;

const Value* failed_one(std::span<const Value> values) {
  for (const Value& value : values)
    if (value.is_failed()) return &value;
  return nullptr;
}

Value too_few(const nn::Cell& cell, std::size_t count) {
  return Value::failed(Code::invalid_argument, fmt::format("{} takes data and a label, {} tensors were given",
                                                           cell.class_name(), count));
}

}  // namespace

WithEvalCell::WithEvalCell(nn::CellPtr network, nn::CellPtr loss_fn, bool add_cast_fp32)
    : Cell("WithEvalCell"),
      network_(std::move(network)),
      loss_fn_(std::move(loss_fn)),
      add_cast_fp32_(add_cast_fp32) {
  set_auto_prefix(false);
  insert_child("_network", network_);
  if (loss_fn_ != nullptr) insert_child("_loss_fn", loss_fn_);
}

Values WithEvalCell::construct(std::span<const Value> inputs) {
  if (inputs.size() < 2) return too_few(*this, inputs.size());
  Values outputs = network_->call(inputs.first(inputs.size() - 1));
  outputs.push_back(inputs.back());
  if (add_cast_fp32_) outputs = graph::floating_as(outputs, DType::float32);
  if (loss_fn_ == nullptr) return outputs;
  const Values loss = loss_fn_->call(outputs);
  if (loss.empty()) return Value::failed(Code::invalid_argument, "the loss function gave no loss");
  outputs.insert(outputs.begin(), loss.front());
  return outputs;
}

TrainStepCell::TrainStepCell(nn::CellPtr network, std::shared_ptr<nn::Optimizer> optimizer)
    : Cell("TrainStepCell"), network_(std::move(network)), optimizer_(std::move(optimizer)) {
  set_auto_prefix(false);
  insert_child("network", network_);
  insert_child("optimizer", optimizer_);
  with_gradients_ = graph::value_and_grad(
      "gradient", [this](std::span<const Value> inputs) { return network_->call(inputs); },
      {.parameters = optimizer_->updated_parameters(), .has_aux = true});
  set_train();
}

void TrainStepCell::set_reduction(std::optional<graph::Reduction> reduction, const nn::Buckets& buckets) {
  if (reduction == reduction_ && buckets == buckets_) return;
  reduction_ = reduction;
  buckets_ = buckets;
  touch();
}

Values TrainStepCell::construct(std::span<const Value> inputs) {
  Values outputs = (*with_gradients_)(inputs);
  if (const Value* failed = failed_one(outputs)) return *failed;
  const std::size_t parameters = optimizer_->updated_parameters().size();
  const auto first = outputs.end() - static_cast<std::ptrdiff_t>(parameters);
  Values gradients(first, outputs.end());
  outputs.erase(first, outputs.end());
  if (reduction_) {
    gradients = nn::reduce_gradients(gradients, *reduction_, buckets_);
  }
  const Values updated = optimizer_->call(gradients);
  if (const Value* failed = failed_one(updated)) return *failed;
  return outputs;
}

}  // namespace muster::train
