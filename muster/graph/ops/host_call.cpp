// host_call: a function of the program around the graph, which computes what no row does.
#include <mutex>

#include "muster/graph/host_function.h"
#include "muster/graph/ops/array.h"
#include "muster/graph/thread_state.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace host_call_rows {

// Null: nothing has that number.
const HostFunction* function_at(std::int64_t number) {
  ProcessState& process = process_state();
  const std::lock_guard lock(process.host_functions_mutex);
  if (number < 0 || static_cast<std::size_t>(number) >= process.host_functions.size()) return nullptr;
  return &process.host_functions[static_cast<std::size_t>(number)];
}

std::int64_t number_of(const Attributes& attributes) { return attributes.get("function", std::int64_t{-1}); }

// The types as one list of numbers, as attributes have them: dtype, rank and sizes of each.
Sizes packed(std::span<const TensorType> types) {
  Sizes list;
  for (const TensorType& type : types) {
    list.push_back(static_cast<std::int64_t>(type.dtype));
    list.push_back(static_cast<std::int64_t>(type.shape.rank()));
    list.insert(list.end(), type.shape.begin(), type.shape.end());
  }
  return list;
}

std::vector<TensorType> unpacked(const Sizes& list) {
  std::vector<TensorType> types;
  for (std::size_t at = 0; at < list.size();) {
    const auto dtype = static_cast<DType>(list[at]);
    const auto first = list.begin() + static_cast<std::ptrdiff_t>(at) + 2;
    types.push_back({dtype, Shape(Sizes(first, first + list[at + 1]))});
    at += 2 + types.back().shape.rank();
  }
  return types;
}

// As many outputs as inputs: those that the function does not have are empty.
Types infer(const Signature& signature) {
  const std::int64_t number = number_of(signature.attributes);
  if (function_at(number) == nullptr)
    return bad("host_call: no function of the script has number {}", number);
  std::vector<TensorType> types = unpacked(sizes_of(signature.attributes, "types"));
  types.resize(signature.inputs.size(), {DType::bool_, Shape{0}});
  return types;
}

struct Settings {
  const HostFunction* function = nullptr;
  std::vector<TensorType> inputs, outputs;
};

Prepared prepare(const Signature& signature) {
  Settings settings{.function = function_at(number_of(signature.attributes)),
                    .inputs = {signature.inputs.begin(), signature.inputs.end()},
                    .outputs = unpacked(sizes_of(signature.attributes, "types"))};
  settings.inputs.resize(static_cast<std::size_t>(signature.attributes.get("inputs", std::int64_t{0})));
  return prepared(std::move(settings));
}

// The function sees copies: what it keeps stays as it was.
void run(const KernelCall& call) {
  const Settings& settings = call.setting<Settings>();
  std::vector<Tensor> inputs, outputs;
  for (const TensorType& type : settings.inputs) {
    inputs.emplace_back(type.dtype, type.shape);
    std::copy_n(call.inputs[inputs.size() - 1], type.size_bytes(), inputs.back().bytes());
  }
  for (const TensorType& type : settings.outputs) outputs.emplace_back(type.dtype, type.shape);
  if (const Result<> done = (*settings.function)(inputs, outputs); !done) {
    *call.failure = done.error();
    return;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    std::copy_n(outputs[i].bytes(), outputs[i].size_bytes(), call.outputs[i]);
}

Result<> to_onnx(OnnxCall& call) { return call.refuse("it calls a function of the script"); }

std::vector<Op> rows() {
  return {{.name = "host_call",
           .documentation =
               "What the script's own function number `function` makes of the first `inputs` inputs: outputs "
               "of `types`, each as dtype, rank and sizes. There are as many outputs as inputs; those that "
               "are left over are empty. `kept` calls are made even where nothing is used.",
           .inputs_min = 1,
           .inputs_max = 64,
           .outputs = 0,
           .infer = infer,
           .kernels = {for_any_dtype({"reference", any_signature, prepare, run})},
           .onnx = to_onnx}};
}

}  // namespace host_call_rows
}  // namespace

std::int64_t keep_host_function(HostFunction function) {
  ProcessState& process = process_state();
  const std::lock_guard lock(process.host_functions_mutex);
  process.host_functions.push_back(std::move(function));
  return static_cast<std::int64_t>(process.host_functions.size()) - 1;
}

Values call_host_function(std::int64_t number, std::span<const Value> inputs,
                          std::span<const TensorType> types, bool always) {
  using namespace host_call_rows;
  Values given(inputs.begin(), inputs.end());
  const Value empty(Tensor(DType::bool_, Shape{0}));
  given.resize(std::max({inputs.size(), types.size(), std::size_t{1}}), empty);
  Values made = apply_all("host_call", given,
                          {{"function", number},
                           {"inputs", static_cast<std::int64_t>(inputs.size())},
                           {"types", packed(types)},
                           {"kept", always}});
  made.resize(types.size());
  return made;
}

std::vector<const Op*> rows_of_host_call() {
  using namespace host_call_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
