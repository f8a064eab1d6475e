#include "muster/graph/execute.h"

#include <fmt/format.h>

#include <utility>

namespace muster::graph {
namespace {

Result<std::vector<Tensor>> read_all(const Op& op, std::span<const Value> inputs, const RunContext& context) {
  std::vector<Tensor> tensors;
  tensors.reserve(inputs.size());
  for (const Value& input : inputs) {
    if (input.is_traced())
      return fail(Code::invalid_argument,
                  fmt::format("{}: a tensor of a graph that is already made ({}) was used outside it",
                              op.name, to_string(input.type())));
    tensors.push_back(input.is_parameter() ? input.parameter()->materialize(context.seed) : input.tensor());
  }
  return tensors;
}

std::vector<Tensor> make_outputs(const Op& op, const std::vector<TensorType>& types,
                                 const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  outputs.reserve(types.size());
  for (const TensorType& type : types) {
    if (op.sharing == Sharing::view || op.sharing == Sharing::in_place)
      outputs.push_back(inputs[0].reshaped(type.shape));
    else
      outputs.emplace_back(type.dtype, type.shape);
  }
  return outputs;
}

Result<> run(const Op& op, const Signature& signature, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& outputs, const RunContext& context) {
  MUSTER_TRY(const Kernel* kernel, choose_kernel(op, signature));
  const Prepared prepared = kernel->prepare(signature);
  std::vector<std::byte*> addresses;
  addresses.reserve(inputs.size() + outputs.size());
  for (const Tensor& tensor : inputs) addresses.push_back(tensor.bytes());
  for (const Tensor& tensor : outputs) addresses.push_back(tensor.bytes());
  const auto scratch = Buffer::allocate(prepared.scratch_bytes);
  std::optional<Error> failure;
  kernel->run({.inputs = addresses.data(),
               .outputs = addresses.data() + inputs.size(),
               .settings = prepared.settings.get(),
               .scratch = scratch->data(),
               .threads = context.threads,
               .communicator = context.communicator,
               .context = &context,
               .failure = &failure});
  if (failure) return fail(*std::move(failure));
  return {};
}

}  // namespace

Result<const Kernel*> choose_kernel(const Op& op, const Signature& signature) {
  for (const Kernel& kernel : op.kernels)
    if (kernel.usable(signature)) return &kernel;
  std::string types;
  for (const TensorType& type : signature.inputs) types += (types.empty() ? "" : ", ") + to_string(type);
  return fail(Code::not_provided, fmt::format("{} has no kernel for {}", op.name, types));
}

Result<Values> execute(const Op& op, std::span<const Value> inputs, const Attributes& attributes,
                       const RunContext& context) {
  MUSTER_TRY(const std::vector<Tensor> tensors, read_all(op, inputs, context));
  std::vector<TensorType> input_types;
  for (const Value& input : inputs) input_types.push_back(input.type());
  MUSTER_TRY(const std::vector<TensorType> output_types, op.infer({input_types, {}, attributes}));
  std::vector<Tensor> outputs = make_outputs(op, output_types, tensors);
  if (op.sharing != Sharing::view)
    MUSTER_TRY_VOID(run(op, {input_types, output_types, attributes}, tensors, outputs, context));
  Values values;
  for (Tensor& output : outputs) values.emplace_back(std::move(output));
  return values;
}

}  // namespace muster::graph
