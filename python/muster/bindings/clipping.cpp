// What training does to gradients and parameters beside optimizers.
#include <nanobind/stl/string.h>

#include <functional>
#include <span>
#include <string>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Value;
using graph::Values;

// One tensor becomes one, a tuple a tuple, a list a list.
nb::object in_form(nb::handle x, const std::function<Values(std::span<const Value>)>& clip) {
  Values given;
  if (is_value(x))
    given.push_back(nb::cast<const Value&>(x));
  else
    for (const nb::handle part : nb::iter(x)) given.push_back(value_from(part));
  const Values made = clip(given);
  if (is_value(x)) return value_object(made.at(0));
  const nb::object tuple = tuple_of(made, &value_object);
  return nb::isinstance<nb::list>(x) ? nb::object(nb::list(tuple)) : tuple;
}

double positive(double value, const char* what) {
  if (value > 0) return value;
  throw nb::value_error((std::string(what) + " must be above 0, not " + std::to_string(value)).c_str());
}

nb::object clip_by_norm(nb::handle x, double max_norm, double norm_type, bool error_if_nonfinite) {
  if (error_if_nonfinite)
    raise(Error{Code::not_provided, "clip_by_norm(error_if_nonfinite=True) is not provided"});
  positive(norm_type, "clip_by_norm: norm_type");
  return in_form(x,
                 [&](std::span<const Value> given) { return nn::clip_by_norm(given, max_norm, norm_type); });
}

nb::object clip_by_global_norm(nb::handle x, double clip_norm, nb::handle use_norm) {
  if (!use_norm.is_none()) raise(Error{Code::not_provided, "clip_by_global_norm(use_norm) is not provided"});
  positive(clip_norm, "clip_by_global_norm: clip_norm");
  return in_form(x, [&](std::span<const Value> given) { return nn::clip_by_global_norm(given, clip_norm); });
}

template <const char* op>
TensorObject write(const Value& variable, nb::handle value) {
  return tensor_result(graph::apply(op, {variable, value_from(value, &variable)}));
}

constexpr char assign[] = "assign";
constexpr char assign_add[] = "assign_add";

}  // namespace

void bind_clipping(nb::module_& core) {
  core.def(
      "clip_by_norm", &clip_by_norm, nb::arg("x"), nb::arg("max_norm"), nb::arg("norm_type") = 2.0,
      nb::arg("error_if_nonfinite") = false,
      nb::sig("def clip_by_norm(x: object, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool "
              "= False) -> typing.Any"),
      "A tensor, or a tuple or list of them, times min(max_norm / (norm + 1e-6), 1), norm being that of all "
      "elements together.");
  core.def("clip_by_global_norm", &clip_by_global_norm, nb::arg("x"), nb::arg("clip_norm") = 1.0,
           nb::arg("use_norm") = nb::none(),
           nb::sig("def clip_by_global_norm(x: object, clip_norm: float = 1.0, use_norm: None = None) -> "
                   "typing.Any"),
           "A tuple or list of tensors times clip_norm / max(norm, clip_norm), norm being the length of all "
           "together. Pascanu et al., ICML 2013.");
  core.def("assign", &write<assign>, nb::arg("variable"), nb::arg("value"),
           "Writes `value` over the parameter `variable`, of the same dtype and shape; gives the variable.");
  core.def(
      "assign_add", &write<assign_add>, nb::arg("variable"), nb::arg("value"),
      "Adds `value` to the parameter `variable` in place, of the same dtype and shape; gives the variable.");
}

}  // namespace muster::python
