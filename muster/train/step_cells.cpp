#include "muster/train/step_cells.h"

#include <fmt/format.h>

#include <utility>

namespace muster::train {
namespace {

using nn::Value;
using nn::Values;

[[noreturn]] void too_few(const nn::Cell& cell, std::size_t count) {
  throw Exception(Code::invalid_argument,
                  fmt::format("{} takes data and a label, {} tensors were given", cell.class_name(), count));
}

// Equal parts of the samples of a batch.
Values split_samples(const Value& batch, std::int64_t parts) {
  const std::int64_t rows = batch.shape().rank() == 0 ? 0 : batch.shape()[0];
  if (rows == 0 || rows % parts != 0)
    throw Exception(Code::invalid_argument,
                    fmt::format("a batch of {} samples cannot be split into {} equal micro_batches: choose a "
                                "batch size that is a multiple of it, and drop_remainder",
                                rows, parts));
  return nn::ops::split_by(batch, rows / parts);
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
  if (inputs.size() < 2) too_few(*this, inputs.size());
  Values outputs = network_->call(inputs.first(inputs.size() - 1));
  outputs.push_back(inputs.back());
  if (add_cast_fp32_) outputs = graph::floating_as(outputs, DType::float32);
  if (loss_fn_ == nullptr) return outputs;
  const Values loss = loss_fn_->call(outputs);
  if (loss.empty()) throw Exception(Code::invalid_argument, "the loss function gave no loss");
  outputs.insert(outputs.begin(), loss.front());
  return outputs;
}

TrainStepCell::TrainStepCell(nn::CellPtr network, std::shared_ptr<nn::Optimizer> optimizer)
    : Cell("TrainStepCell"), network_(std::move(network)), optimizer_(std::move(optimizer)) {
  set_auto_prefix(false);
  insert_child("network", network_);
  insert_child("optimizer", optimizer_);
  with_gradients_ =
      graph::value_and_grad("gradient", [this](std::span<const Value> inputs) { return forward(inputs); },
                            {.parameters = optimizer_->updated_parameters(), .has_aux = true});
  set_train();
}

void TrainStepCell::set_reduction(std::optional<Reduction> reduction, const nn::Buckets& buckets) {
  if (reduction == reduction_ && buckets == buckets_) return;
  reduction_ = reduction;
  buckets_ = buckets;
  touch();
}

void TrainStepCell::set_micro_batches(std::int64_t count) {
  if (count == micro_batches_) return;
  micro_batches_ = count;
  touch();
}

Values TrainStepCell::forward(std::span<const Value> inputs) {
  if (micro_batches_ == 1) return network_->call(inputs);
  std::vector<Values> parts(static_cast<std::size_t>(micro_batches_));
  for (const Value& input : inputs) {
    const Values split = split_samples(input, micro_batches_);
    for (std::size_t k = 0; k < parts.size(); ++k) parts[k].push_back(split[k]);
  }
  Value total;
  graph::MicroBatchScope samples;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    samples.begin(static_cast<std::int64_t>(k));
    const Values outputs = network_->call(parts[k]);
    if (outputs.size() != 1 || outputs[0].shape().rank() != 0)
      throw Exception(Code::invalid_argument,
                      fmt::format("with micro_batches the network gives one number, the mean loss of its "
                                  "samples, and nothing else; {} gives {} outputs, the first {}",
                                  network_->description(), outputs.size(),
                                  outputs.empty() ? "none" : to_string(outputs[0].type())));
    total = total.defined() ? nn::ops::add(total, outputs[0]) : outputs[0];
  }
  const Value share = graph::apply("fill", std::span<const Value>{},
                                   {{"dtype", total.dtype()},
                                    {"shape", std::vector<std::int64_t>{}},
                                    {"value", 1.0 / static_cast<double>(micro_batches_)}});
  return nn::ops::mul(total, share);
}

Values TrainStepCell::construct(std::span<const Value> inputs) {
  Values outputs = (*with_gradients_)(inputs);
  const std::size_t parameters = optimizer_->updated_parameters().size();
  const auto first = outputs.end() - static_cast<std::ptrdiff_t>(parameters);
  Values gradients(first, outputs.end());
  outputs.erase(first, outputs.end());
  if (reduction_) {
    gradients = nn::reduce_gradients(gradients, *reduction_, buckets_);
  }
  optimizer_->call(gradients);
  return outputs;
}

}  // namespace muster::train
