#include "muster/nn/wrap.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "muster/nn/arguments.h"
#include "muster/nn/ops.h"
#include "muster/nn/values.h"

namespace muster::nn {

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
  Values given = backbone_->call(inputs.first(1));
  given.push_back(inputs[1]);
  return loss_fn_->call(add_cast_fp32_ ? graph::floating_as(given, DType::float32) : given);
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

Values reduce_gradients(std::span<const Value> gradients, Reduction reduction, const Buckets& buckets) {
  graph::Attributes attributes{{"reduction", std::string(to_string(reduction))}, {"weight_order", true}};
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

Values TrainOneStepCell::construct(std::span<const Value> inputs) {
  graph::Trace* const trace = graph::Trace::current();
  graph::Tape tape;  // of eager mode
  Value loss, scaled;
  {
    std::optional<graph::Tape::Scope> recording;
    if (trace == nullptr) recording.emplace(tape);
    const Values outputs = network_->call(inputs);
    loss = outputs.empty() ? Value() : outputs[0];
    scaled = options_.sens == 1 ? loss : ops::mul(loss, number_like(loss, options_.sens));
  }
  if (!loss.defined())
    throw Exception(Code::invalid_argument,
                    fmt::format("{} gave {} no loss", network_->description(), description()));
  const std::vector<Value> wanted(optimizer_->updated_parameters().begin(),
                                  optimizer_->updated_parameters().end());
  const std::vector<Value> made =
      trace ? trace->gradient({&scaled, 1}, wanted) : tape.gradient({&scaled, 1}, wanted);
  Values gradients(made.begin(), made.end());
  if (options_.reduction) gradients = reduce_gradients(gradients, *options_.reduction, options_.buckets);
  optimizer_->call(gradients);
  Values results{loss};
  if (options_.return_grad) results.insert(results.end(), gradients.begin(), gradients.end());
  return results;
}

}  // namespace muster::nn
