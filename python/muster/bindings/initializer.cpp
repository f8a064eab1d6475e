#include "python/muster/bindings/initializer.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
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

// `_initialize(array)` of a class that Python defines. It may be called from any thread, and end on any.
graph::Initializer filled_by_python(nb::handle self) {
  const std::shared_ptr<nb::object> held(new nb::object(nb::borrow(self)), [](nb::object* object) {
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire lock;
    delete object;
  });
  return [held](const Tensor& out, const RandomStream&) {
    const nb::gil_scoped_acquire lock;
    const nb::object numpy = nb::module_::import_("numpy");
    const nb::object dtype = nb::str(std::string(to_string(out.dtype())).c_str());
    const nb::object array = numpy.attr("zeros")(
        tuple_of(out.shape().sizes(), [](std::int64_t size) { return nb::object(nb::int_(size)); }), dtype);
    const nb::object answer = held->attr("_initialize")(array);
    const Tensor made = tensor_copied(answer.is_none() ? array : answer, out.dtype());
    if (made.shape() != out.shape()) throw nb::value_error("_initialize gave an array of another shape");
    std::memcpy(out.bytes(), made.bytes(), out.size_bytes());
  };
}

// The kinds fill floating tensors; others get the same numbers, cast.
graph::Initializer in_whole_numbers(graph::Initializer fill) {
  return [fill = std::move(fill)](const Tensor& out, const RandomStream& stream) {
    const Tensor numbers(DType::float64, out.shape());
    fill(numbers, stream);
    const Tensor whole = tensor_as(numbers, out.dtype());
    std::memcpy(out.bytes(), whole.bytes(), out.size_bytes());
  };
}

graph::Initializer fitting(const nn::InitializerKind& kind, const Shape& shape, const std::string& what) {
  Result<> fits = nn::require_fitting(kind, shape);
  if (!fits) raise(Error{fits.error().code, what + ": " + fits.error().message});
  return kind.fill;
}

}  // namespace

InitialValue::InitialValue(graph::Initializer fill, graph::TensorType type, const std::string& name)
    : graph::Value(std::make_shared<graph::Parameter>(name, std::move(type), fill, false)),
      initializer(std::move(fill)) {}

const InitialValue* unfilled(nb::handle object) {
  if (!nb::isinstance<InitialValue>(object)) return nullptr;
  const auto& initial = nb::cast<const InitialValue&>(object);
  const bool is_filled = !initial.is_parameter() || initial.parameter()->materialized();
  return is_filled ? nullptr : &initial;
}

graph::Initializer initializer_from(nb::handle object, const Shape& shape, const std::string& what) {
  if (nb::isinstance<nb::str>(object))
    return fitting(unwrap(nn::initializer_kind_named(nb::cast<std::string>(object))), shape, what);
  if (nb::isinstance<PythonInitializer>(object) && nb::hasattr(object, "_initialize"))
    return filled_by_python(object);
  if (nb::isinstance<PythonInitializer>(object) &&
      nb::cast<const PythonInitializer&>(object).kind.fill == nullptr)
    throw nb::type_error((class_name(object) + " defines no _initialize(self, array)").c_str());
  if (nb::isinstance<PythonInitializer>(object))
    return fitting(nb::cast<const PythonInitializer&>(object).kind, shape, what);
  if (const InitialValue* initial = unfilled(object)) {
    require_shape(initial->shape(), shape, what);
    return initial->initializer;
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
  bind_class<5>(core, "TruncatedNormalInitializer", "Normally distributed, between `a` and `b`.")
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

nn::VarianceScalingOptions variance_scaling_from(double scale, const std::string& mode,
                                                 const std::string& distribution) {
  if (!(scale > 0)) throw nb::value_error("VarianceScaling: scale is a number above 0");
  nn::VarianceScalingOptions options{.scale = scale};
  if (mode == "fan_out")
    options.mode = nn::FanMode::out;
  else if (mode == "fan_avg")
    options.mode = nn::FanMode::average;
  else if (mode != "fan_in")
    throw nb::value_error(("mode is 'fan_in', 'fan_out' or 'fan_avg', not '" + mode + "'").c_str());
  if (distribution == "uniform")
    options.distribution = nn::Distribution::uniform;
  else if (distribution == "untruncated_normal")
    options.distribution = nn::Distribution::untruncated_normal;
  else if (distribution != "truncated_normal")
    throw nb::value_error(
        ("distribution is 'uniform', 'truncated_normal' or 'untruncated_normal', not '" + distribution + "'")
            .c_str());
  return options;
}

void bind_further(nb::module_& core) {
  bind_class<12>(core, "VarianceScalingInitializer",
                 "Of variance scale / fan, by a distribution 'uniform', 'truncated_normal' or "
                 "'untruncated_normal'; fan is that of `mode`, 'fan_in', 'fan_out' or 'fan_avg'.")
      .def(
          "__init__",
          [](Made<12>* self, double scale, const std::string& mode, const std::string& distribution) {
            make(self, "variance_scaling",
                 nn::variance_scaling(variance_scaling_from(scale, mode, distribution)), 2);
          },
          nb::arg("scale") = 1.0, nb::arg("mode") = "fan_in", nb::arg("distribution") = "truncated_normal");
  bind_class<13>(core, "SparseInitializer",
                 "A matrix, normally distributed, but for the part `sparsity` of each column, which is 0.")
      .def(
          "__init__",
          [](Made<13>* self, double sparsity, double sigma) {
            if (!(sparsity >= 0 && sparsity <= 1))
              throw nb::value_error("Sparse: sparsity is a number from 0 to 1");
            make(self, "sparse", nn::sparse(sparsity, sigma), 2, 2);
          },
          nb::arg("sparsity"), nb::arg("sigma") = 0.01);
  bind_class<14>(core, "DiracInitializer",
                 "Weights (out, in, kernel...) of three to five axes that hand on each channel: 1 in the "
                 "middle of the kernel from a channel to that of its number in each of `groups` parts.")
      .def(
          "__init__",
          [](Made<14>* self, std::int64_t groups) {
            if (groups < 1) throw nb::value_error("Dirac: groups is a number from 1");
            make(self, "dirac", nn::dirac(groups), 3, 5);
            self->kind.groups = groups;
          },
          nb::arg("groups") = 1);
}

}  // namespace

void bind_initializers(nb::module_& core) {
  nb::class_<PythonInitializer>(core, "Initializer", nb::dynamic_attr(), nb::is_weak_referenceable(),
                                "How the elements of a parameter begin. A subclass fills the array that "
                                "_initialize(array) is given, or gives another one.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<PythonInitializer> self, const nb::args&, const nb::kwargs& keywords) {
            new (self.p) PythonInitializer{{"Initializer", nullptr}};
            self.h.attr("__dict__")["_kwargs"] = keywords;
          },
          nb::arg("args"), nb::arg("kwargs"));
  bind_plain(core);
  bind_random(core);
  bind_further(core);
  nb::class_<InitialValue, graph::Value>(
      core, "InitialValue", "A tensor that an initializer fills when its elements are first asked for.")
      .def(
          "init_data",
          [](const InitialValue& self, const nb::args&, const nb::kwargs&) {
            return tensor_object(elements_of(self).clone());
          },
          nb::arg("args"), nb::arg("kwargs"),
          nb::sig("def init_data(self, *args: object, **kwargs: object) -> Tensor"),
          "The tensor with its elements.")
      .def_prop_ro(
          "has_init", [](nb::handle self) { return unfilled(self) != nullptr; },
          "Whether it has no elements yet.");
  core.def(
      "initializer",
      [](nb::handle init, nb::handle sizes, nb::handle dtype) {
        Shape shape(PyLong_Check(sizes.ptr()) ? std::vector<std::int64_t>{nb::cast<std::int64_t>(sizes)}
                                              : nb::cast<std::vector<std::int64_t>>(sizes));
        if (std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; }))
          throw Exception(Code::invalid_argument,
                          "initializer: shape " + to_string(shape) + " has a size below 0");
        auto fill = initializer_from(init, shape, "init");
        DType to = dtype.is_none() ? DType::float32 : dtype_from(dtype);
        if (is_value(init) && unfilled(init) == nullptr) to = nb::cast<const graph::Value&>(init).dtype();
        if (!is_floating(to)) fill = in_whole_numbers(std::move(fill));
        return InitialValue(std::move(fill), {to, std::move(shape)}, "initializer");
      },
      nb::arg("init"), nb::arg("shape") = nb::make_tuple(), nb::arg("dtype") = nb::none(),
      nb::sig("def initializer(init: object, shape: int | collections.abc.Sequence[int] = (), dtype: DType | "
              "str | type | None = None) -> InitialValue"),
      "A tensor of `shape` and `dtype` (float32, or that of a tensor `init`), filled when its elements are "
      "first asked for, by the name of an initializer, an Initializer, a number or a tensor. A Parameter "
      "begins with it.");
}

}  // namespace muster::python
