// argmax and equal: what accuracy is made of.
#include "muster/graph/ops/ops.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {

Types infer_argmax(const Signature& signature) {
  const TensorType& x = signature.inputs[0];
  MUSTER_TRY_VOID(require_floating("argmax", x));
  if (x.shape.rank() == 0 || x.shape.sizes().back() == 0)
    return bad("argmax: {} has no last axis to search", muster::to_string(x.shape));
  std::vector<std::int64_t> sizes = x.shape.sizes();
  sizes.pop_back();
  return std::vector<TensorType>{{DType::int32, Shape(std::move(sizes))}};
}

struct Settings {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

Prepared prepare_argmax(const Signature& signature) {
  return prepared(Settings{signature.outputs[0].shape.elements(), signature.inputs[0].shape.sizes().back()});
}

template <class T>
void run_argmax(const KernelCall& call) {
  const auto& [rows, columns] = call.setting<Settings>();
  kernels::argmax(call.input<T>(0), call.output<std::int32_t>(), rows, columns);
}

Types infer_equal(const Signature& signature) {
  MUSTER_TRY_VOID(require_equal_dtypes("equal", signature));
  if (signature.inputs[0].shape != signature.inputs[1].shape)
    return bad("equal: {} and {} differ in shape", muster::to_string(signature.inputs[0].shape),
               muster::to_string(signature.inputs[1].shape));
  return std::vector<TensorType>{{DType::bool_, signature.inputs[0].shape}};
}

template <class T>
void run_equal(const KernelCall& call) {
  kernels::equal(call.input<T>(0), call.input<T>(1), call.output<bool>(), call.setting<std::int64_t>());
}

template <class... T>
std::vector<Kernel> equal_kernels() {
  return {reference<T>(count, run_equal<T>)...};
}

}  // namespace

const Op& argmax_op() {
  static const Op op{
      .name = "argmax",
      .documentation = "(..., C) to (...), int32: the first index of the greatest element; NaN is greatest.",
      .infer = infer_argmax,
      .kernels = {reference<float>(prepare_argmax, run_argmax<float>),
                  reference<double>(prepare_argmax, run_argmax<double>)},
  };
  return op;
}

const Op& equal_op() {
  static const Op op{
      .name = "equal",
      .documentation = "a == b as bool; equal shapes and dtypes.",
      .inputs_min = 2,
      .inputs_max = 2,
      .infer = infer_equal,
      .kernels = equal_kernels<float, double, std::int32_t, std::int64_t, std::uint8_t, std::uint32_t,
                               std::int8_t, bool>(),
  };
  return op;
}

}  // namespace muster::graph
