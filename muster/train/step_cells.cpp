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

WithEvalCell::WithEvalCell(nn::CellPtr network, nn::CellPtr loss_fn)
    : Cell("WithEvalCell"), network_(std::move(network)), loss_fn_(std::move(loss_fn)) {
  set_auto_prefix(false);
  insert_child("_network", network_);
  if (loss_fn_ != nullptr) insert_child("_loss_fn", loss_fn_);
}

Values WithEvalCell::construct(std::span<const Value> inputs) {
  if (inputs.size() < 2) return too_few(*this, inputs.size());
  Values outputs = network_->call(inputs.first(inputs.size() - 1));
  outputs.push_back(inputs.back());
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

void TrainStepCell::set_reduction(std::optional<graph::Reduction> reduction) {
  if (reduction == reduction_) return;
  reduction_ = reduction;
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
    Result<Values> joined = reduce_gradients(gradients, *reduction_);
    if (!joined) return Value::failed(joined.error());
    gradients = *std::move(joined);
  }
  const Values updated = optimizer_->call(gradients);
  if (const Value* failed = failed_one(updated)) return *failed;
  return outputs;
}

Result<Values> reduce_gradients(std::span<const Value> gradients, graph::Reduction reduction) {
  Values reduced(gradients.begin(), gradients.end());
  std::vector<bool> done(gradients.size(), false);
  for (std::size_t first = 0; first < gradients.size(); ++first) {
    if (done[first]) continue;
    std::vector<std::size_t> places;
    std::vector<Value> same_dtype;
    for (std::size_t i = first; i < gradients.size(); ++i) {
      if (done[i] || gradients[i].dtype() != gradients[first].dtype()) continue;
      done[i] = true;
      places.push_back(i);
      same_dtype.push_back(gradients[i]);
    }
    const Values joined =
        graph::apply_all("all_reduce", same_dtype, {{"reduction", std::string(graph::to_string(reduction))}});
    if (const Value* failed = failed_one(joined)) return fail(failed->error());
    for (std::size_t i = 0; i < places.size(); ++i) reduced[places[i]] = joined[i];
  }
  return reduced;
}

}  // namespace muster::train
