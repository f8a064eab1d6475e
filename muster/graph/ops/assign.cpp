// assign and assign_add, writes to parameters, and snapshot, what a parameter was before one.
#include <cstring>

#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/training.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace assign_rows {

template <bool adds>
Types infer(const Signature& signature) {
  constexpr std::string_view name = adds ? "assign_add" : "assign";
  if (signature.inputs[1] != signature.inputs[0])
    return bad("{}: the value must be {}, not {}", name, to_string(signature.inputs[0]),
               to_string(signature.inputs[1]));
  if (adds && signature.inputs[0].dtype == DType::bool_)
    return bad("assign_add: numbers are needed, not bool");
  return same_as_first(signature);
}

Prepared size_of(const Signature& signature) {
  return prepared(static_cast<std::int64_t>(signature.inputs[0].size_bytes()));
}

void run_assign(const KernelCall& call) {
  std::memmove(call.outputs[0], call.inputs[1], static_cast<std::size_t>(call.setting<std::int64_t>()));
}

// The result is the parameter: what flows to it is a gradient of that. What is added counts, too.
std::vector<Value> gradient_assign(const GradientQuery& query) {
  return {query.output_gradients[0], Value()};
}
std::vector<Value> gradient_add(const GradientQuery& query) {
  return {query.output_gradients[0], query.output_gradients[0]};
}
std::vector<Value> gradient_snapshot(const GradientQuery& query) { return {query.output_gradients[0]}; }

void run_snapshot(const KernelCall& call) {
  std::memcpy(call.outputs[0], call.inputs[0], static_cast<std::size_t>(call.setting<std::int64_t>()));
}

template <class T>
void run_add(const KernelCall& call) {
  const T* const value = call.input<T>(1);
  T* const out = call.output<T>();
  for (std::int64_t i = 0; i < call.setting<std::int64_t>(); ++i) out[i] = static_cast<T>(out[i] + value[i]);
}

template <class... T>
std::vector<Kernel> kernel_list() {
  return {reference<T>(count, run_add<T>)...};
}

}  // namespace assign_rows
}  // namespace

const Op& assign_op() {
  using namespace assign_rows;
  static const Op op{
      .name = "assign",
      .documentation = "Writes the second tensor over the first, a parameter of the same dtype and shape.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer<false>,
      .gradient = gradient_assign,
      .kernels = {for_any_dtype({"reference", any_signature, size_of, run_assign})},
      .sharing = Sharing::in_place,
  };
  return op;
}

const Op& assign_add_op() {
  using namespace assign_rows;
  static const Op op{
      .name = "assign_add",
      .documentation =
          "Adds the second tensor to the first in place, a parameter of the same dtype (any but bool) and "
          "shape.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer<true>,
      .gradient = gradient_add,
      .kernels =
          kernel_list<float, double, std::int32_t, std::int64_t, std::uint8_t, std::uint32_t, std::int8_t>(),
      .sharing = Sharing::in_place,
  };
  return op;
}

const Op& snapshot_op() {
  using namespace assign_rows;
  static const Op op{
      .name = "snapshot",
      .documentation =
          "The elements of x as they are now, in memory of their own. A trace and a tape note one before a "
          "parameter is written that was read: gradients of what was computed from it need what it was.",
      .infer = same_as_first,
      .gradient = gradient_snapshot,
      .kernels = {for_any_dtype({"reference", any_signature, size_of, run_snapshot})},
      .dimensions = elementwise,
  };
  return op;
}

std::vector<const Op*> rows_of_assign() { return {&assign_op(), &assign_add_op(), &snapshot_op()}; }

}  // namespace muster::graph
