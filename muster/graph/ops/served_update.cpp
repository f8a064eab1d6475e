// served_update: a step of the parameters that live on parameter servers.
#include <algorithm>

#include "muster/graph/ops/array.h"
#include "muster/graph/ops/ops.h"
#include "muster/graph/served.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace served_update_rows {

constexpr std::size_t counters = 2;       // steps of the optimizer, and of all
constexpr std::size_t per_parameter = 3;  // the parameter, its gradient, its learning rate

// As many outputs as inputs: those of the parameters are their new elements, the others are empty.
Types infer(const Signature& signature) {
  const Sizes numbers = sizes_of(signature.attributes, "parameters");
  if (signature.inputs.size() != counters + per_parameter * numbers.size())
    return bad("served_update: {} parameters come with {} inputs", numbers.size(), signature.inputs.size());
  std::vector<TensorType> types(signature.inputs.size(), {DType::bool_, Shape{0}});
  for (std::size_t i = counters; i < signature.inputs.size(); i += per_parameter) {
    const TensorType& parameter = signature.inputs[i];
    if (parameter.dtype != DType::float32 || signature.inputs[i + 1] != parameter)
      return bad("served_update: parameter {} is {}, its gradient {}; both are float32 on parameter servers",
                 i / per_parameter, to_string(parameter), to_string(signature.inputs[i + 1]));
    types[i] = parameter;
  }
  return types;
}

struct Settings {
  Sizes numbers;
  std::vector<std::size_t> elements;
};

Prepared prepare(const Signature& signature) {
  Settings settings{.numbers = sizes_of(signature.attributes, "parameters"), .elements = {}};
  for (std::size_t i = counters; i < signature.inputs.size(); i += per_parameter)
    settings.elements.push_back(static_cast<std::size_t>(signature.inputs[i].shape.elements()));
  return prepared(std::move(settings));
}

void run(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  const Result<ServedCalls> calls = served_calls();
  if (!calls) {
    *call.failure = calls.error();
    return;
  }
  std::vector<ServedUpdate> updates;
  for (std::size_t i = 0; i < settings.numbers.size(); ++i) {
    const std::size_t at = counters + per_parameter * i, elements = settings.elements[i];
    updates.push_back({.number = settings.numbers[i],
                       .learning_rate = *call.input<float>(at + 2),
                       .gradient = {call.input<float>(at + 1), elements},
                       .before = {call.input<float>(at), elements},
                       .after = {call.output<float>(at), elements}});
  }
  const ServedSteps steps{.all = *call.input<std::int32_t>(1), .own = *call.input<std::int32_t>(0)};
  if (Result<> done = calls->update(steps, updates); !done) *call.failure = std::move(done).error();
}

Result<> to_onnx(OnnxCall& call) { return call.refuse("it updates parameters on parameter servers"); }

std::vector<Op> rows() {
  return {
      {.name = "served_update",
       .documentation =
           "A step of `parameters` that live on parameter servers: the steps that their optimizer has done "
           "and those of all such optimizers, then each parameter, its gradient and its learning rate (). "
           "The output of each parameter is what the servers make of the gradients of all workers; the "
           "others are empty. Every worker calls it.",
       .inputs_min = counters,
       .inputs_max = 65536,
       .outputs = 0,
       .infer = infer,
       .kernels = {for_any_dtype({"reference", any_signature, prepare, run})},
       .collective = true,
       .onnx = to_onnx}};
}

}  // namespace served_update_rows
}  // namespace

std::vector<const Op*> rows_of_served_update() {
  static const std::vector<Op> family = served_update_rows::rows();
  return addresses(family);
}

}  // namespace muster::graph
