#include "muster/nn/wrap.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "muster/graph/served.h"
#include "muster/nn/arguments.h"
#include "muster/nn/ops.h"
#include "muster/nn/values.h"

namespace muster::nn {

namespace {

// Equal parts of the samples of a batch.
Values split_samples(const Value& batch, std::int64_t parts) {
  const std::int64_t rows = batch.shape().rank() == 0 ? 0 : batch.shape()[0];
  if (rows == 0 || rows % parts != 0)
    throw Exception(Code::invalid_argument,
                    fmt::format("a batch of {} samples cannot be split into {} equal micro_batches: choose a "
                                "batch size that is a multiple of it, and drop_remainder",
                                rows, parts));
  return ops::split_by(batch, rows / parts);
}

}  // namespace

Values outputs_and_label(Cell& network, std::span<const Value> inputs, bool add_cast_fp32) {
  if (inputs.size() < 2)
    throw Exception(Code::invalid_argument, fmt::format("a loss of {} takes data and a label, {} tensors "
                                                        "were given",
                                                        network.description(), inputs.size()));
  Values given = network.call(inputs.first(inputs.size() - 1));
  given.push_back(inputs.back());
  return add_cast_fp32 ? graph::floating_as(given, DType::float32) : given;
}

LossCall Cell::call_with_loss(std::span<const Value> inputs, Cell& loss_fn, bool add_cast_fp32) {
  LossCall call{.given = outputs_and_label(*this, inputs, add_cast_fp32), .loss = {}};
  call.loss = loss_fn.call(call.given);
  return call;
}

WithLossCell::WithLossCell(CellPtr backbone, CellPtr loss_fn, bool add_cast_fp32)
    : Cell("WithLossCell"),
      backbone_(std::move(backbone)),
      loss_fn_(std::move(loss_fn)),
      add_cast_fp32_(add_cast_fp32) {
  set_auto_prefix(false);
  insert_child("_backbone", backbone_);
  insert_child("_loss_fn", loss_fn_);
}

Values WithLossCell::construct(std::span<const Value> inputs) {
  require_inputs(*this, inputs, 2, "data and label");
  return backbone_->call_with_loss(inputs, *loss_fn_, add_cast_fp32_).loss;
}

WithEvalCell::WithEvalCell(CellPtr network, CellPtr loss_fn, bool add_cast_fp32)
    : Cell("WithEvalCell"),
      network_(std::move(network)),
      loss_fn_(std::move(loss_fn)),
      add_cast_fp32_(add_cast_fp32) {
  set_auto_prefix(false);
  insert_child("_network", network_);
  if (loss_fn_ != nullptr) insert_child("_loss_fn", loss_fn_);
}

Values WithEvalCell::construct(std::span<const Value> inputs) {
  if (loss_fn_ == nullptr) return outputs_and_label(*network_, inputs, add_cast_fp32_);
  auto [outputs, loss] = network_->call_with_loss(inputs, *loss_fn_, add_cast_fp32_);
  if (loss.empty()) throw Exception(Code::invalid_argument, "the loss function gave no loss");
  outputs.insert(outputs.begin(), loss.front());
  return outputs;
}

Result<> check_buckets(const Buckets& buckets) {
  if (buckets.bytes < 1)
    return fail(Code::invalid_argument,
                fmt::format("a bucket of {} bytes holds no gradient: choose 1 or more", buckets.bytes));
  std::int64_t before = 0;
  for (const std::int64_t split : buckets.splits) {
    if (split <= before)
      return fail(Code::invalid_argument,
                  fmt::format("gradients cannot be split before {} after {}: give ascending positions from 1",
                              split, before));
    before = split;
  }
  return {};
}

Values reduce_gradients(std::span<const Value> gradients, Reduction reduction, const Buckets& buckets,
                        ElementOrder order) {
  graph::Attributes attributes{{"reduction", std::string(to_string(reduction))},
                               {"weight_order", order == ElementOrder::of_kernels}};
  if (buckets.splits.empty())
    attributes.set("bucket_bytes", buckets.bytes);
  else
    attributes.set("bucket_splits", buckets.splits);
  std::map<DType, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    places[gradients[i].dtype()].push_back(i);
  }
  Values reduced(gradients.size());
  for (const auto& [dtype, indices] : places) {
    std::vector<Value> alike;
    for (const std::size_t i : indices) alike.push_back(gradients[i]);
    const Values made = graph::apply_all("all_reduce", alike, attributes);
    for (std::size_t k = 0; k < indices.size(); ++k) reduced[indices[k]] = made[k];
  }
  return reduced;
}

Values reduce_gradients_of(const std::vector<ParameterPtr>& parameters, std::span<const Value> gradients,
                           Reduction reduction, const Buckets& buckets) {
  Values own, made(gradients.begin(), gradients.end());
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (!graph::served_number(*parameters[i])) own.push_back(gradients[i]);
  if (own.empty()) return made;
  const Values reduced = reduce_gradients(own, reduction, buckets);
  for (std::size_t i = 0, next = 0; i < gradients.size(); ++i)
    if (!graph::served_number(*parameters[i])) made[i] = reduced[next++];
  return made;
}

TrainOneStepCell::TrainOneStepCell(CellPtr network, std::shared_ptr<Optimizer> optimizer,
                                   TrainOneStepOptions options)
    : Cell("TrainOneStepCell"),
      network_(std::move(network)),
      optimizer_(std::move(optimizer)),
      options_(options) {
  set_auto_prefix(false);
  if (options_.sens == 0) refuse_argument("TrainOneStepCell", "sens", "other than 0", 0).value();
  insert_child("network", network_);
  insert_child("optimizer", optimizer_);
}

void TrainOneStepCell::set_reduction(std::optional<Reduction> reduction, const Buckets& buckets) {
  if (reduction == options_.reduction && buckets == options_.buckets) return;
  options_.reduction = reduction;
  options_.buckets = buckets;
  touch("how gradients are reduced was changed");
}

void TrainOneStepCell::set_micro_batches(std::int64_t count) {
  if (count == options_.micro_batches) return;
  options_.micro_batches = count;
  touch("the number of micro-batches was changed");
}

namespace {

// Of a plan before each of its runs.
void note_step(graph::Trace* trace) {
  const auto trains = graph::anomaly_hooks().trains;
  if (trains == nullptr) return;
  if (trace == nullptr) return trains(true);
  trace->before_run([trains](bool /*is_first*/) -> Result<> {
    trains(false);
    return {};
  });
}

}  // namespace

// What the network gives, the loss first.
Values TrainOneStepCell::forward(std::span<const Value> inputs) {
  if (options_.micro_batches == 1) {
    Values outputs = network_->call(inputs);
    if (outputs.empty() || !outputs[0].defined())
      throw Exception(Code::invalid_argument,
                      fmt::format("{} gave {} no loss", network_->description(), description()));
    return outputs;
  }
  std::vector<Values> parts(static_cast<std::size_t>(options_.micro_batches));
  for (const Value& input : inputs) {
    const Values split = split_samples(input, options_.micro_batches);
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
    total = total.defined() ? ops::add(total, outputs[0]) : outputs[0];
  }
  const Value share = graph::apply("fill", std::span<const Value>{},
                                   {{"dtype", total.dtype()},
                                    {"shape", std::vector<std::int64_t>{}},
                                    {"value", 1.0 / static_cast<double>(options_.micro_batches)}});
  return {ops::mul(total, share)};
}

Values TrainOneStepCell::construct(std::span<const Value> inputs) {
  graph::Trace* const trace = graph::Trace::current();
  graph::Tape tape;  // of eager mode
  Values outputs;
  Value scaled;
  {
    std::optional<graph::Tape::Scope> recording;
    if (trace == nullptr) recording.emplace(tape);
    outputs = forward(inputs);
    const Value& loss = outputs[0];
    scaled = options_.sens == 1 ? loss : ops::mul(loss, number_like(loss, options_.sens));
  }
  const std::vector<Value> wanted(optimizer_->updated_parameters().begin(),
                                  optimizer_->updated_parameters().end());
  const std::vector<Value> made =
      trace ? trace->gradient({&scaled, 1}, wanted) : tape.gradient({&scaled, 1}, wanted);
  Values gradients(made.begin(), made.end());
  if (options_.reduction)
    gradients = reduce_gradients_of(optimizer_->updated_parameters(), gradients, *options_.reduction,
                                    options_.buckets);
  optimizer_->call(gradients);
  note_step(trace);
  Values results = options_.has_aux ? outputs : Values{outputs[0]};
  if (options_.return_grad) results.insert(results.end(), gradients.begin(), gradients.end());
  return results;
}

}  // namespace muster::nn
