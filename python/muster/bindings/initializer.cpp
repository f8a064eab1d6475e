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

void require_shape(const Shape& given, const Shape& wanted, const std::string& what) {
  if (given == wanted) return;
  throw nb::value_error(
      (what + " has shape " + to_string(given) + ", but the parameter has " + to_string(wanted)).c_str());
}

graph::Initializer copying(const Tensor& values, const Shape& shape, const std::string& what) {
  require_shape(values.shape(), shape, what);
  return [values](const Tensor& out, const RandomStream&) {
    const Tensor fitting = tensor_as(values, out.dtype());
    std::memcpy(out.bytes(), fitting.bytes(), out.size_bytes());
  };
}

graph::Initializer fitting(const nn::InitializerKind& kind, const Shape& shape, const std::string& what) {
  Result<> fits = nn::require_fitting(kind, shape);
  if (!fits) raise(Error{fits.error().code, what + ": " + fits.error().message});
  return kind.fill;
}

}  // namespace

graph::Initializer initializer_from(nb::handle object, const Shape& shape, const std::string& what) {
  if (nb::isinstance<nb::str>(object))
    return fitting(unwrap(nn::initializer_kind_named(nb::cast<std::string>(object))), shape, what);
  if (nb::isinstance<PythonInitializer>(object))
    return fitting(nb::cast<const PythonInitializer&>(object).kind, shape, what);
  if (nb::isinstance<InitialValue>(object)) {
    const auto& value = nb::cast<const InitialValue&>(object);
    require_shape(value.type.shape, shape, what);
    return value.initializer;
  }
  if (PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()))
    return nn::constant(nb::cast<double>(object));
  if (is_value(object)) return copying(elements_of(nb::cast<const graph::Value&>(object)), shape, what);
  return copying(tensor_copied(object, {}), shape, what);
}

std::optional<graph::Initializer> optional_initializer_from(nb::handle object, const Shape& shape,
                                                            const std::string& what) {
  if (object.is_none()) return std::nullopt;
  return initializer_from(object, shape, what);
}

namespace {

// A Python class for each initializer needs a C++ class for each.
template <int number>
struct Made : PythonInitializer {};

template <int number>
nb::class_<Made<number>, PythonInitializer> bind_class(nb::module_& core, const char* name, const char* doc) {
  return nb::class_<Made<number>, PythonInitializer>(core, name, doc);
}

template <class Of>
void make(Of* self, std::string_view name, graph::Initializer fill, std::size_t rank_min = 0,
          std::size_t rank_max = 16) {
  new (self) Of{{{name, std::move(fill), rank_min, rank_max}}};
}

nn::Fan fan_from(const std::string& mode) {
  if (mode == "fan_in") return nn::Fan::in;
  if (mode == "fan_out") return nn::Fan::out;
  throw nb::value_error(("mode is 'fan_in' or 'fan_out', not '" + mode + "'").c_str());
}

nn::Nonlinearity nonlinearity_from(const std::string& name) {
  if (const auto found = nn::nonlinearity_from(name)) return *found;
  throw nb::value_error(
      ("nonlinearity is 'sigmoid', 'linear', 'tanh', 'relu' or 'leaky_relu', not '" + name + "'").c_str());
}

using He = nn::Initializer (*)(double, nn::Fan, nn::Nonlinearity);

template <int number, He he>
void bind_he(nb::module_& core, const char* class_name, const char* name, const char* doc) {
  bind_class<number>(core, class_name, doc)
      .def(
          "__init__",
          [name](Made<number>* self, double negative_slope, const std::string& mode,
                 const std::string& nonlinearity) {
            make(self, name, he(negative_slope, fan_from(mode), nonlinearity_from(nonlinearity)), 2);
          },
          nb::arg("negative_slope") = 0.0, nb::arg("mode") = "fan_in",
          nb::arg("nonlinearity") = "leaky_relu");
}

using Gained = nn::Initializer (*)(double);

template <int number, Gained of>
void bind_gained(nb::module_& core, const char* class_name, const char* name, const char* doc) {
  bind_class<number>(core, class_name, doc)
      .def(
          "__init__", [name](Made<number>* self, double gain) { make(self, name, of(gain), 2); },
          nb::arg("gain") = 1.0);
}

void bind_plain(nb::module_& core) {
  bind_class<0>(core, "ZeroInitializer", "All elements 0.").def("__init__", [](Made<0>* self) {
    make(self, "zeros", nn::zeros());
  });
  bind_class<1>(core, "OneInitializer", "All elements 1.").def("__init__", [](Made<1>* self) {
    make(self, "ones", nn::ones());
  });
  bind_class<2>(core, "ConstantInitializer", "All elements `value`.")
      .def(
          "__init__", [](Made<2>* self, double value) { make(self, "constant", nn::constant(value)); },
          nb::arg("value"));
  bind_class<3>(core, "IdentityInitializer", "A matrix with 1 where the indices are equal, else 0.")
      .def("__init__", [](Made<3>* self) { make(self, "identity", nn::identity(), 2, 2); });
}

void bind_random(nb::module_& core) {
  bind_class<4>(core, "NormalInitializer", "Normally distributed around `mean`.")
      .def(
          "__init__",
          [](Made<4>* self, double sigma, double mean) { make(self, "normal", nn::normal(sigma, mean)); },
          nb::arg("sigma") = 0.01, nb::arg("mean") = 0.0);
  bind_class<5>(core, "TruncatedNormalInitializer",
                "Normally distributed, between mean + a * sigma and mean + b * sigma.")
      .def(
          "__init__",
          [](Made<5>* self, double sigma, double mean, double a, double b) {
            if (!(a < b)) throw nb::value_error("a is below b");
            make(self, "truncated_normal", nn::truncated_normal({sigma, mean, a, b}));
          },
          nb::arg("sigma") = 0.01, nb::arg("mean") = 0.0, nb::arg("a") = -2.0, nb::arg("b") = 2.0);
  bind_class<6>(core, "UniformInitializer", "Uniform in [-scale, scale).")
      .def(
          "__init__", [](Made<6>* self, double scale) { make(self, "uniform", nn::uniform(scale)); },
          nb::arg("scale") = 0.07);
  bind_gained<7, nn::xavier_uniform>(
      core, "XavierUniformInitializer", "xavier_uniform",
      "Uniform in [-b, b), b = gain * sqrt(6 / (fan_in + fan_out)); for shapes "
      "(out, in, kernel...). Glorot and Bengio, AISTATS 2010.");
  bind_gained<8, nn::xavier_normal>(
      core, "XavierNormalInitializer", "xavier_normal",
      "Normal, sigma = gain * sqrt(2 / (fan_in + fan_out)); for shapes (out, in, "
      "kernel...). Glorot and Bengio, AISTATS 2010.");
  bind_he<9, nn::he_uniform>(core, "HeUniformInitializer", "he_uniform",
                             "Uniform in [-b, b), b = gain * sqrt(3 / fan); gain is sqrt(2 / (1 + "
                             "negative_slope^2)) for leaky_relu. He et al., ICCV 2015.");
  bind_he<10, nn::he_normal>(core, "HeNormalInitializer", "he_normal",
                             "Normal, sigma = gain / sqrt(fan); gain is sqrt(2 / (1 + negative_slope^2)) for "
                             "leaky_relu. He et al., ICCV 2015.");
  bind_gained<11, nn::orthogonal>(
      core, "OrthogonalInitializer", "orthogonal",
      "As a matrix (first axis, all others): its rows or its columns, whichever are "
      "fewer, are orthogonal and of length `gain`. Saxe et al., ICLR 2014.");
}

}  // namespace

void bind_initializers(nb::module_& core) {
  nb::class_<PythonInitializer>(core, "Initializer", "How the elements of a parameter begin.");
  bind_plain(core);
  bind_random(core);
  nb::class_<InitialValue>(core, "InitialValue",
                           "An initializer with the shape and dtype that it is to fill.");
  core.def(
      "initializer",
      [](nb::handle init, nb::handle sizes, nb::handle dtype) {
        Shape shape(PyLong_Check(sizes.ptr()) ? std::vector<std::int64_t>{nb::cast<std::int64_t>(sizes)}
                                              : nb::cast<std::vector<std::int64_t>>(sizes));
        auto fill = initializer_from(init, shape, "init");
        const DType to = dtype.is_none() ? DType::float32 : dtype_from(dtype);
        if (!is_floating(to)) raise(Error{Code::not_provided, "initializers fill float32 and float64 only"});
        return InitialValue{std::move(fill), {to, std::move(shape)}};
      },
      nb::arg("init"), nb::arg("shape"), nb::arg("dtype") = nb::none(),
      "What a Parameter begins with: the name of an initializer, an Initializer, a number or a tensor, for "
      "`shape` and `dtype` (default float32).");
}

}  // namespace muster::python
