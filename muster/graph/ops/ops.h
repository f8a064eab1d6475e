// Private to graph: the rows of the op table, and what their rules share.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/graph/op.h"

namespace muster::graph {

// Of all files; op.cpp sorts them.
std::vector<const Op*> all_ops();

const Op& add_op();
const Op& all_reduce_op();
const Op& argmax_op();
const Op& bias_add_op();
const Op& cast_op();
const Op& dense_op();
const Op& div_op();
const Op& equal_op();
const Op& fill_op();
const Op& matmul_op();
const Op& momentum_op();
const Op& mul_op();
const Op& reduce_mean_op();
const Op& reduce_sum_op();
const Op& relu_op();
const Op& relu_grad_op();
const Op& reshape_op();
const Op& sgd_op();
const Op& softmax_cross_entropy_op();
const Op& softmax_cross_entropy_grad_op();
const Op& sub_op();
const Op& sum_to_op();
const Op& tanh_op();
const Op& tanh_grad_op();

using Types = Result<std::vector<TensorType>>;

template <class... Arguments>
tl::unexpected<Error> bad(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  return fail(Code::invalid_argument, fmt::format(text, std::forward<Arguments>(arguments)...));
}

// One output like input 0.
Types same_as_first(const Signature& signature);
// "relu: float32 or float64 is needed, not int32", or nothing.
Result<> require_floating(std::string_view op, const TensorType& type);
Result<> require_equal_dtypes(std::string_view op, const Signature& signature);

// Settings that are one value of any type.
template <class S>
Prepared prepared(S settings, std::size_t scratch_bytes = 0) {
  return {std::make_shared<const S>(std::move(settings)), scratch_bytes};
}
inline Prepared nothing(const Signature&) { return {}; }
// The number of elements of output 0.
inline Prepared count(const Signature& signature) { return prepared(signature.outputs[0].shape.elements()); }

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
