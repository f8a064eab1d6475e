// Private to graph: the rows of the op table, and what their rules share.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/graph/kernel.h"
#include "muster/graph/onnx/rule.h"
#include "muster/tensor/kernels.h"

namespace muster::graph {

// Of all files of this folder that define `rows_of_<file>()`: muster/graph/CMakeLists.txt makes the list.
std::vector<const Op*> all_ops();

const Op& add_op();
const Op& all_reduce_op();
const Op& bias_add_op();
const Op& cast_op();
const Op& clip_op();
const Op& dense_op();
const Op& dropout_op();
const Op& dropout_grad_op();
const Op& fill_op();
const Op& layer_norm_op();
const Op& layer_norm_grad_op();
const Op& matmul_op();
const Op& momentum_op();
const Op& relu_op();
const Op& relu_grad_op();
const Op& reshape_op();
const Op& select_op();
const Op& sgd_op();
const Op& softmax_cross_entropy_op();
const Op& softmax_cross_entropy_grad_op();
const Op& stop_gradient_op();
const Op& sum_to_op();
const Op& tanh_op();

// Rows that share one implementation.
std::vector<const Op*> addresses(const std::vector<Op>& family);

using Types = Result<std::vector<TensorType>>;

template <class... Arguments>
tl::unexpected<Error> bad(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  return fail(Code::invalid_argument, fmt::format(text, std::forward<Arguments>(arguments)...));
}

// One output like input 0.
Types same_as_first(const Signature& signature);
// "relu: floating numbers are needed, not int32", or nothing.
Result<> require_floating(std::string_view op, const TensorType& type);
// "add: numbers are needed, not bool", or nothing.
Result<> require_number(std::string_view op, const TensorType& type);
Result<> require_equal_dtypes(std::string_view op, const Signature& signature);
// Of the statistics and parameters of a normalisation: those beside numbers of 16 bits are float32.
inline DType statistics_dtype(DType x) { return computed_in(x); }

// Settings that are one value of any type.
template <class S>
Prepared prepared(S settings, std::size_t scratch_bytes = 0) {
  return {std::make_shared<const S>(std::move(settings)), scratch_bytes};
}
inline Prepared nothing(const Signature&) { return {}; }
// The number of elements of output 0.
inline Prepared count(const Signature& signature) { return prepared(signature.outputs[0].shape.elements()); }

// What most elementwise kernels need to know of input 0.
struct Elements {
  DType dtype = DType::float32;
  std::int64_t count = 0;
};
inline Prepared elements_of_first(const Signature& signature) {
  return prepared(Elements{signature.inputs[0].dtype, signature.inputs[0].shape.elements()});
}
// Of a kernel that takes whatever the shape rule allows.
inline bool any_signature(const Signature&) { return true; }
// `kernel` for these dtypes; without it for those of Kernel::takes.
inline Kernel taking(DTypes dtypes, Kernel kernel) {
  kernel.takes = dtypes;
  return kernel;
}
// Of kernels that move elements, or look at their size only.
inline Kernel for_any_dtype(Kernel kernel) { return taking(DTypes::all(), kernel); }
// What arithmetic has loops for (kernels::with_number_element).
inline constexpr DTypes arithmetic{DType::float32, DType::float64, DType::int32, DType::int64};
inline constexpr DTypes arithmetic_and_bfloat16 = arithmetic | DTypes{DType::bfloat16};
inline Kernel with_bfloat16(Kernel kernel) {
  kernel.takes = kernel.takes | DTypes{DType::bfloat16};
  return kernel;
}

// For kernels that take elements in any order, if it is the same for all, and give zero for zeros (padding):
// the first format among the inputs when all of them look like output 0; null for plain.
FormatPtr common_format(const Signature& signature);
// Of output 0, with the padding of `format`.
std::int64_t elements_in(const FormatPtr& format, const Signature& signature);
// `made` for inputs and one output in `format`.
Prepared in_format(Prepared made, const Signature& signature, const FormatPtr& format);
// The number of elements in the common format.
Prepared count_alike(const Signature& signature);

template <class T>
bool first_is(const Signature& signature) {
  return signature.inputs[0].dtype == dtype_of<T>;
}

// The reference kernel of an op for the dtype T of its input 0.
template <class T>
Kernel reference(Prepared (*prepare)(const Signature&), void (*run)(const KernelCall&)) {
  return {"reference", first_is<T>, prepare, run};
}

}  // namespace muster::graph
