// Arithmetic, comparisons, reductions and activations as functions of module `_core`.
#include <nanobind/stl/optional.h>

#include <optional>

#include "muster/nn/nn.h"
#include "python/muster/bindings/operands.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Value;
namespace ops = nn::ops;

template <Value (*op)(const Value&)>
void one(nb::module_& core, const char* name) {
  core.def(
      name, [](const Operand& x) { return tensor_result(op(value_from(x))); }, nb::arg("x"),
      documentation_of(name));
}

template <Value (*op)(const Value&, const Value&)>
void two(nb::module_& core, const char* name) {
  core.def(
      name,
      [](const Operand& a, const Operand& b) {
        const auto [left, right] = pair_from(a, b);
        return tensor_result(op(left, right));
      },
      nb::arg("a"), nb::arg("b"), documentation_of(name));
}

template <Value (*op)(const Value&, const ops::ReduceOptions&)>
void reduction(nb::module_& core, const char* name, const char* documentation) {
  core.def(
      name,
      [](const Operand& x, const Axes& axis, bool keep_dims) {
        return tensor_result(op(value_from(x), {.axes = axes_from(axis), .keep_dims = keep_dims}));
      },
      nb::arg("x"), nb::arg("axis").none() = nb::none(), nb::arg("keep_dims") = false, documentation);
}

template <Value (*op)(const Value&, std::int64_t)>
void along_axis(nb::module_& core, const char* name) {
  core.def(
      name, [](const Operand& x, std::int64_t axis) { return tensor_result(op(value_from(x), axis)); },
      nb::arg("x"), nb::arg("axis") = -1, documentation_of(name));
}

void bind_pairs(nb::module_& core) {
  two<ops::add>(core, "add");
  two<ops::sub>(core, "sub");
  two<ops::mul>(core, "mul");
  two<ops::div>(core, "div");
  two<ops::floor_div>(core, "floor_div");
  two<ops::mod>(core, "mod");
  two<ops::pow>(core, "pow");
  two<ops::maximum>(core, "maximum");
  two<ops::minimum>(core, "minimum");
  two<ops::equal>(core, "equal");
  two<ops::not_equal>(core, "not_equal");
  two<ops::less>(core, "less");
  two<ops::less_equal>(core, "less_equal");
  two<ops::greater>(core, "greater");
  two<ops::greater_equal>(core, "greater_equal");
  two<ops::logical_and>(core, "logical_and");
  two<ops::logical_or>(core, "logical_or");
}

void bind_singles(nb::module_& core) {
  one<ops::logical_not>(core, "logical_not");
  one<ops::isnan>(core, "isnan");
  one<ops::isinf>(core, "isinf");
  one<ops::isfinite>(core, "isfinite");
  one<ops::neg>(core, "neg");
  one<ops::abs>(core, "abs");
  one<ops::sign>(core, "sign");
  one<ops::square>(core, "square");
  one<ops::reciprocal>(core, "reciprocal");
  one<ops::sqrt>(core, "sqrt");
  one<ops::rsqrt>(core, "rsqrt");
  one<ops::exp>(core, "exp");
  one<ops::expm1>(core, "expm1");
  one<ops::log>(core, "log");
  one<ops::log1p>(core, "log1p");
  one<ops::erf>(core, "erf");
  one<ops::sin>(core, "sin");
  one<ops::cos>(core, "cos");
  one<ops::floor>(core, "floor");
  one<ops::ceil>(core, "ceil");
  one<ops::round>(core, "round");
}

void bind_nonlinearities(nb::module_& core) {
  one<ops::relu>(core, "relu");
  one<ops::relu6>(core, "relu6");
  one<ops::sigmoid>(core, "sigmoid");
  one<ops::tanh>(core, "tanh");
  one<ops::silu>(core, "silu");
  one<ops::softplus>(core, "softplus");
  core.def(
      "leaky_relu",
      [](const Operand& x, double alpha) { return tensor_result(ops::leaky_relu(value_from(x), alpha)); },
      nb::arg("x"), nb::arg("alpha") = 0.2, documentation_of("leaky_relu"));
  core.def(
      "elu", [](const Operand& x, double alpha) { return tensor_result(ops::elu(value_from(x), alpha)); },
      nb::arg("x"), nb::arg("alpha") = 1.0, documentation_of("elu"));
  core.def(
      "gelu",
      [](const Operand& x, bool approximate) { return tensor_result(ops::gelu(value_from(x), approximate)); },
      nb::arg("x"), nb::arg("approximate") = false, documentation_of("gelu"));
}

void bind_over_axes(nb::module_& core) {
  reduction<ops::reduce_sum>(core, "reduce_sum", documentation_of("reduce_sum"));
  reduction<ops::reduce_mean>(core, "reduce_mean", documentation_of("reduce_mean"));
  reduction<ops::reduce_max>(core, "reduce_max", documentation_of("reduce_max"));
  reduction<ops::reduce_min>(core, "reduce_min", documentation_of("reduce_min"));
  reduction<ops::reduce_prod>(core, "reduce_prod", documentation_of("reduce_prod"));
  reduction<ops::reduce_all>(
      core, "reduce_all",
      "Whether all elements over `axis` (all axes by default) are true (not 0), as bool.");
  reduction<ops::reduce_any>(
      core, "reduce_any", "Whether any element over `axis` (all axes by default) is true (not 0), as bool.");
  along_axis<ops::argmax>(core, "argmax");
  along_axis<ops::argmin>(core, "argmin");
  along_axis<ops::softmax>(core, "softmax");
  along_axis<ops::log_softmax>(core, "log_softmax");
}

void bind_others(nb::module_& core) {
  core.def(
      "clip",
      [](const Operand& x, std::optional<double> min, std::optional<double> max) {
        return tensor_result(ops::clip(value_from(x), {.min = min, .max = max}));
      },
      nb::arg("x"), nb::arg("min").none() = nb::none(), nb::arg("max").none() = nb::none(),
      documentation_of("clip"));
  core.def(
      "select",
      [](const Operand& condition, const Operand& a, const Operand& b) {
        const auto [left, right] = pair_from(a, b);
        return tensor_result(ops::select(value_from(condition), left, right));
      },
      nb::arg("condition"), nb::arg("a"), nb::arg("b"), documentation_of("select"));
  core.def(
      "layer_norm",
      [](const Operand& x, const Operand& gamma, const Operand& beta, std::int64_t begin_norm_axis,
         double eps) {
        return tensor_result(ops::layer_norm(value_from(x), value_from(gamma), value_from(beta),
                                             {.begin_norm_axis = begin_norm_axis, .eps = eps}));
      },
      nb::arg("x"), nb::arg("gamma"), nb::arg("beta"), nb::arg("begin_norm_axis") = -1, nb::arg("eps") = 1e-5,
      documentation_of("layer_norm"));
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
}

}  // namespace

void bind_ops_math(nb::module_& core) {
  bind_pairs(core);
  bind_singles(core);
  bind_nonlinearities(core);
  bind_over_axes(core);
  bind_others(core);
}

}  // namespace muster::python
