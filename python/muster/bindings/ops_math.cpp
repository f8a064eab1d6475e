// Functions of numbers that the op rows do not describe.
#include <nanobind/stl/string.h>

#include <cstring>

#include "muster/graph/host_function.h"
#include "muster/nn/nn.h"
#include "python/muster/bindings/array_arguments.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/exceptions.h"
#include "python/muster/bindings/interpreter_lock.h"
#include "python/muster/bindings/operands.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Value;
namespace ops = nn::ops;

template <Value (*op)(const Value&, const std::vector<std::int64_t>&, bool)>
void over_axes(nb::module_& core, const char* name, const char* documentation) {
  core.def(
      name,
      [](const Operand& x, const Axes& axis, bool keep_dims) {
        return tensor_result(op(value_from(x), axes_from(axis), keep_dims));
      },
      nb::arg("x"), nb::arg("axis").none() = nb::none(), nb::arg("keep_dims") = false, documentation);
}

// ---- Functions of the script as ops
// ------------------------------------------------------------------------

Error wrong_output(std::size_t index, const Tensor& given, const Tensor& wanted) {
  return {Code::invalid_argument, "output " + std::to_string(index) + " of the function is " +
                                      to_string(graph::TensorType{given.dtype(), given.shape()}) +
                                      ", and it was said to be " +
                                      to_string(graph::TensorType{wanted.dtype(), wanted.shape()})};
}

// `answer` is what a Python function gave: an array or tensor, or a tuple or list of them.
Result<> write_outputs(nb::handle answer, std::span<const Tensor> outputs) {
  if (outputs.empty()) return {};
  const bool is_list = nb::isinstance<nb::tuple>(answer) || nb::isinstance<nb::list>(answer);
  const nb::object parts = is_list ? nb::borrow(answer) : nb::object(nb::make_tuple(answer));
  if (nb::len(parts) != outputs.size())
    return fail(Code::invalid_argument, "the function gave " + std::to_string(nb::len(parts)) +
                                            " outputs instead of " + std::to_string(outputs.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor given = elements_of(value_from(parts[i]));
    if (given.dtype() != outputs[i].dtype() || given.shape() != outputs[i].shape())
      return tl::unexpected(wrong_output(i, given, outputs[i]));
    std::memcpy(outputs[i].bytes(), given.bytes(), given.size_bytes());
  }
  return {};
}

graph::HostFunction host_function(nb::handle function) {
  return [function = function.inc_ref()](std::span<const Tensor> inputs,
                                         std::span<const Tensor> outputs) -> Result<> {
    const InterpreterLock lock;
    try {
      nb::list given;
      for (const Tensor& input : inputs) given.append(tensor_object(input));
      return write_outputs(function(*nb::tuple(given)), outputs);
    } catch (nb::python_error& error) {
      return tl::unexpected(error_of(error));
    } catch (const Exception& error) {
      return tl::unexpected(error.error());
    }
  };
}

std::vector<graph::TensorType> types_from(nb::handle types) {
  std::vector<graph::TensorType> made;
  for (const nb::handle type : nb::iter(types))
    made.push_back({dtype_from(type[0]), Shape(sizes_from(type[1]))});
  return made;
}

}  // namespace

void bind_ops_math(nb::module_& core) {
  over_axes<ops::reduce_all>(
      core, "reduce_all",
      "Whether all elements over `axis` (all axes by default) are true (not 0), as bool.");
  over_axes<ops::reduce_any>(
      core, "reduce_any", "Whether any element over `axis` (all axes by default) is true (not 0), as bool.");
  core.def(
      "dropout",
      [](const Operand& x, double keep_prob) {
        return tensor_result(ops::dropout(value_from(x), keep_prob, graph::default_context()));
      },
      nb::arg("x"), nb::arg("keep_prob") = 0.5, documentation_of("dropout"));
  core.def(
      "dropout_and_mask",
      [](const Operand& x, double keep_prob) {
        return nb::borrow<nb::typed<nb::tuple, TensorObject, TensorObject>>(
            values_object(ops::dropout_and_mask(value_from(x), keep_prob, graph::default_context())));
      },
      nb::arg("x"), nb::arg("keep_prob") = 0.5, documentation_of("dropout"));
  core.def(
      "scaled_dot_product_attention",
      [](const Operand& query, const Operand& key, const Operand& value, const std::optional<Operand>& mask,
         double dropout_p, bool is_causal, std::optional<double> scale,
         bool /*enable_gqa: heads share keys wherever there are fewer of them*/) {
        nn::ops::AttentionOptions options{.dropout_p = dropout_p, .is_causal = is_causal, .scale = scale};
        if (mask) options.mask = value_from(*mask);
        return tensor_result(ops::scaled_dot_product_attention(
            value_from(query), value_from(key), value_from(value), options, graph::default_context()));
      },
      nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("attn_mask") = nb::none(),
      nb::arg("dropout_p") = 0.0, nb::arg("is_causal") = false, nb::arg("scale") = nb::none(),
      nb::arg("enable_gqa") = false, documentation_of("scaled_dot_product_attention"));
  core.def(
      "_random_numbers",
      [](const std::string& op, nb::handle shape, nb::handle dtype, std::int64_t seed) {
        return tensor_result(graph::apply(op, {},
                                          {{"shape", sizes_from(shape)},
                                           {"dtype", dtype_or_none(dtype).value_or(DType::float32)},
                                           {"seed", seed},
                                           {"stream", graph::next_random_stream()}}));
      },
      nb::arg("op"), nb::arg("shape"), nb::arg("dtype") = nb::none(), nb::arg("seed") = 0,
      "Of 'random_uniform' or 'random_normal'.");
  core.def(
      "_random_numbers_of",
      [](const std::string& op, const Operand& parameter, std::int64_t seed) {
        return tensor_result(graph::apply(op, {value_from(parameter)},
                                          {{"seed", seed}, {"stream", graph::next_random_stream()}}));
      },
      nb::arg("op"), nb::arg("parameter"), nb::arg("seed") = 0, "Of 'random_gamma' or 'random_poisson'.");
  core.def(
      "_keep_host_function",
      [](nb::handle function) { return graph::keep_host_function(host_function(function)); },
      nb::arg("function"), "The number of a function of tensors, for _call_host_function.");
  core.def(
      "_call_host_function",
      [](std::int64_t number, nb::handle inputs, nb::handle types, bool always) {
        return tensor_tuple(
            graph::call_host_function(number, values_from(inputs), types_from(types), always));
      },
      nb::arg("number"), nb::arg("inputs"), nb::arg("types"), nb::arg("always") = false,
      "What the function makes of the inputs: outputs of `types`, (dtype, shape) each. In graph mode it is "
      "called in each run; with `always` even where no output is used.");
}

}  // namespace muster::python
