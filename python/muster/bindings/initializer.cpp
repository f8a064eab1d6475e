#include "python/muster/bindings/initializer.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <utility>
#include <vector>

#include "python/muster/bindings/convert.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

graph::Initializer copying(const Tensor& values, const Shape& shape, const std::string& what) {
  if (values.shape() != shape)
    throw nb::value_error(
        (what + " has shape " + to_string(values.shape()) + ", but the parameter has " + to_string(shape))
            .c_str());
  return [values](const Tensor& out, const RandomStream&) {
    const Tensor fitting = tensor_as(values, out.dtype());
    std::memcpy(out.bytes(), fitting.bytes(), out.size_bytes());
  };
}

}  // namespace

graph::Initializer initializer_from(nb::handle object, const Shape& shape, const std::string& what) {
  if (nb::isinstance<nb::str>(object)) return unwrap(nn::initializer_named(nb::cast<std::string>(object)));
  if (nb::isinstance<PythonInitializer>(object)) return nb::cast<const PythonInitializer&>(object).fill;
  if (PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()))
    return nn::constant(nb::cast<double>(object));
  if (is_value(object)) return copying(elements_of(nb::cast<const graph::Value&>(object)), shape, what);
  return copying(tensor_copied(object, {}), shape, what);
}

void bind_initializers(nb::module_& core) {
  nb::class_<PythonInitializer>(core, "Initializer", "How the elements of a parameter begin.");
  core.def(
      "zeros_initializer", [] { return PythonInitializer{nn::zeros()}; }, "All elements 0.");
  core.def(
      "ones_initializer", [] { return PythonInitializer{nn::ones()}; }, "All elements 1.");
  core.def(
      "constant_initializer", [](double value) { return PythonInitializer{nn::constant(value)}; },
      nb::arg("value"), "All elements `value`.");
  core.def(
      "normal_initializer",
      [](double sigma, double mean) { return PythonInitializer{nn::normal(sigma, mean)}; },
      nb::arg("sigma") = 0.01, nb::arg("mean") = 0.0, "Normally distributed around `mean`.");
  core.def(
      "uniform_initializer", [](double scale) { return PythonInitializer{nn::uniform(scale)}; },
      nb::arg("scale") = 0.07, "Uniform in [-scale, scale).");
  core.def(
      "xavier_uniform_initializer", [](double gain) { return PythonInitializer{nn::xavier_uniform(gain)}; },
      nb::arg("gain") = 1.0, "Uniform in [-b, b), b = gain * sqrt(6 / (fan_in + fan_out)).");
  core.def(
      "he_uniform_initializer",
      [](double negative_slope, const std::string& mode) {
        if (mode != "fan_in" && mode != "fan_out") throw nb::value_error("mode is 'fan_in' or 'fan_out'");
        return PythonInitializer{
            nn::he_uniform(negative_slope, mode == "fan_in" ? nn::Fan::in : nn::Fan::out)};
      },
      nb::arg("negative_slope") = 0.0, nb::arg("mode") = "fan_in",
      "Uniform in [-b, b), b = sqrt(3 / fan) * sqrt(2 / (1 + negative_slope^2)).");
  nb::class_<InitialValue>(core, "InitialValue",
                           "An initializer with the shape and dtype that it is to fill.");
  core.def(
      "initializer",
      [](nb::handle init, std::vector<std::int64_t> sizes, nb::handle dtype) {
        Shape shape(std::move(sizes));
        auto fill = initializer_from(init, shape, "init");
        if (!dtype.is_none() && dtype_from(dtype) != DType::float32)
          raise(Error{Code::not_provided, "initializers fill float32 only"});
        return InitialValue{std::move(fill), {DType::float32, std::move(shape)}};
      },
      nb::arg("init"), nb::arg("shape"), nb::arg("dtype") = nb::none(),
      "What a Parameter begins with: the name of an initializer, an Initializer, a number or a tensor, for "
      "`shape` and `dtype` (default float32).");
}

}  // namespace muster::python
