#include "python/muster/bindings/parameter.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "muster/train/train.h"
#include "python/muster/bindings/convert.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/initializer.h"
#include "python/muster/bindings/process.h"
#include "python/muster/bindings/tensor_methods.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Parameter;
using graph::ParameterPtr;

// Python's objects of a parameter come and go: this one tells whether the parameter itself is still there.
struct ParameterWatch {
  std::weak_ptr<Parameter> parameter;
};

std::unordered_map<const Parameter*, PythonParameter*>& objects() { return process().parameters; }

// Python's numbers, numpy.float64 among them, are int32 and float32 in a parameter; others have a dtype.
std::optional<DType> dtype_of_number(nb::handle input) {
  if (nb::isinstance<nb::bool_>(input)) return {};
  if (nb::isinstance<nb::int_>(input)) return DType::int32;
  if (nb::isinstance<nb::float_>(input)) return DType::float32;
  return {};
}

ParameterPtr make_parameter(nb::handle input, const std::string& name, bool requires_grad) {
  if (const InitialValue* initial = unfilled(input))
    return std::make_shared<Parameter>(name, initial->type(), initial->initializer, requires_grad);
  const Tensor values = is_value(input) ? elements_of(nb::cast<const graph::Value&>(input))
                                        : tensor_copied(input, dtype_of_number(input));
  return std::make_shared<Parameter>(name, values, requires_grad);
}

graph::Value cast_to(const graph::Value& value, DType dtype) {
  if (!value.defined() || value.dtype() == dtype) return value;
  return graph::apply("cast", {value}, {{"dtype", dtype}});
}

// Of a table on servers all rows, not the row of zeros that is here.
void require_whole(const Parameter& parameter, const muster::Shape& given, const std::string& what) {
  const auto& rows = parameter.served_rows();
  const muster::Shape& whole = rows ? rows->shape : parameter.shape();
  if (given == whole) return;
  throw nb::value_error(
      ("parameter '" + parameter.name() + "' is " + to_string(whole) + ", " + what + " " + to_string(given))
          .c_str());
}

void write(const ParameterPtr& parameter, const graph::Value& given) {
  const graph::Value value = cast_to(given, parameter->dtype());
  if (graph::is_tracing() || graph::is_taping()) {
    graph::apply("assign", {graph::Value(parameter), value});
    return;
  }
  if (parameter->absence() == nullptr) parameter->materialize(train::seed());
  unwrap(train::check_settable(*parameter));
  if (parameter->served_rows()) require_whole(*parameter, value.shape(), "the values are");
  unwrap(parameter->set(elements_of(value)));
}

// What initializer() gave fills the parameter anew, with numbers that belong to its name.
void fill(Parameter& parameter, const InitialValue& initial) {
  unwrap(train::check_settable(parameter));
  require_whole(parameter, initial.shape(), "the initializer is for");
  Parameter filled(parameter.name(), {parameter.dtype(), initial.shape()}, initial.initializer);
  unwrap(parameter.set(filled.materialize(train::seed())));
}

nb::object set_data(nb::handle self, nb::handle data, bool) {
  const ParameterPtr& parameter = nb::cast<const PythonParameter&>(self).parameter();
  if (const InitialValue* initial = unfilled(data))
    fill(*parameter, *initial);
  else
    write(parameter, is_value(data) ? nb::cast<const graph::Value&>(data)
                                    : graph::Value(tensor_copied(data, parameter->dtype())));
  return nb::borrow(self);
}

nb::object cloned(nb::handle self, nb::handle init) {
  const Parameter& own = *nb::cast<const PythonParameter&>(self).parameter();
  if (nb::isinstance<nb::str>(init) && nb::cast<std::string>(init) == "same") {
    const graph::Value values = copied(nb::cast<const graph::Value&>(self));
    if (graph::is_tracing() || graph::is_taping()) return value_object(values);
    return self.type()(values, own.name(), own.requires_grad(), own.is_layerwise());
  }
  auto made = std::make_shared<Parameter>(own.name(), own.type(), initializer_from(init, own.shape(), "init"),
                                          own.requires_grad());
  made->set_layerwise(own.is_layerwise());
  return parameter_object(made);
}

void set_param_ps(const PythonParameter& self, bool init_in_server) {
  put_on_servers(self.parameter(), init_in_server);
}

}  // namespace

void put_on_servers(const ParameterPtr& parameter, bool init_in_server, const train::TableOptions& options) {
  if (!train::parameter_servers().enabled)
    throw std::runtime_error(
        "set_param_ps is of parameter server training: call set_ps_context(enable_ps=True) before init()");
  if (init_in_server && !parameter->name().ends_with("embedding_table"))
    throw std::runtime_error(
        "set_param_ps: init_in_server=True is for parameters whose names end in "
        "'embedding_table', not '" +
        parameter->name() + "'");
  unwrap(train::put_on_servers(parameter, options));
}

PythonParameter::PythonParameter(ParameterPtr parameter) : graph::Value(parameter) {
  objects().emplace(parameter.get(), this);
}

PythonParameter::~PythonParameter() {
  const auto found = objects().find(parameter().get());
  if (found != objects().end() && found->second == this) objects().erase(found);
}

nb::object parameter_object(const ParameterPtr& parameter) {
  if (const auto found = objects().find(parameter.get()); found != objects().end()) {
    nb::object object = nb::find(*found->second);
    if (object.is_valid()) return object;
  }
  return nb::cast(std::make_unique<PythonParameter>(parameter));
}

void set_value(nb::handle self, graph::Value value) {
  if (nb::isinstance<PythonParameter>(self))
    write(nb::cast<const PythonParameter&>(self).parameter(), value);
  else
    nb::cast<graph::Value&>(self) = std::move(value);
}

nb::typed<nb::list, PythonParameter> parameter_objects(const std::vector<ParameterPtr>& parameters) {
  nb::list made;
  for (const ParameterPtr& parameter : parameters) made.append(parameter_object(parameter));
  return made;
}

std::vector<ParameterPtr> parameters_from(nb::handle iterable, const std::string& what) {
  std::vector<ParameterPtr> parameters;
  for (const nb::handle item : nb::iter(iterable)) {
    if (nb::isinstance<nb::dict>(item))
      throw nb::type_error(
          (what + ": groups of parameters are not provided yet; pass a list of Parameters").c_str());
    if (!nb::isinstance<PythonParameter>(item)) {
      const auto type = class_name(item);
      throw nb::type_error((what + " takes Parameters, not " + type).c_str());
    }
    parameters.push_back(nb::cast<const PythonParameter&>(item).parameter());
  }
  return parameters;
}

void bind_parameter(nb::module_& core) {
  nb::class_<ParameterWatch>(core, "_ParameterWatch").def_prop_ro("is_alive", [](const ParameterWatch& self) {
    return !self.parameter.expired();
  });
  nb::class_<PythonParameter, graph::Value>(core, "Parameter",
                                            "A named tensor that outlives the calls and is updated in place: "
                                            "a weight, or the state of an optimizer.")
      .def(
          "__init__",
          [](PythonParameter* self, nb::handle default_input, nb::handle name, bool requires_grad,
             bool layerwise_parallel, bool, nb::handle) {
            if (!name.is_none() && !nb::isinstance<nb::str>(name))
              throw nb::type_error(("Parameter: name is a string or None, not " + class_name(name)).c_str());
            if (PyBool_Check(default_input.ptr()))
              throw nb::value_error(
                  "Parameter: a bool is no value of a parameter; give a tensor or a number");
            const std::string given = name.is_none() ? "" : nb::cast<std::string>(name);
            new (self) PythonParameter(make_parameter(default_input, given, requires_grad));
            self->parameter()->set_layerwise(layerwise_parallel);
          },
          nb::arg("default_input"), nb::arg("name") = nb::none(), nb::arg("requires_grad") = true,
          nb::arg("layerwise_parallel") = false, nb::arg("parallel_optimizer") = true,
          nb::arg("storage_format") = "",
          nb::sig("def __init__(self, default_input: object, name: str | None = None, requires_grad: bool = "
                  "True, layerwise_parallel: bool = False, parallel_optimizer: bool = True, storage_format: "
                  "str = '') -> None"),
          "A parameter with the elements of `default_input`: a tensor, an array, numbers, or "
          "initializer(...). A cell that it is set on names it by its path when it has no name. "
          "`layerwise_parallel` says that each worker has one of its own, which training with other workers "
          "refuses. The last two change nothing.")
      .def_prop_rw(
          "name", [](const PythonParameter& self) { return self.parameter()->name(); },
          [](const PythonParameter& self, std::string name) { self.parameter()->rename(std::move(name)); },
          "The path of the parameter in its cells, as 'fc.weight'. It decides the random numbers of the "
          "initializer.")
      .def_prop_rw(
          "requires_grad", [](const PythonParameter& self) { return self.parameter()->requires_grad(); },
          [](const PythonParameter& self, bool requires_grad) {
            self.parameter()->set_requires_grad(requires_grad);
          },
          "Whether trainable_params() lists it.")
      .def_prop_rw(
          "layerwise_parallel", [](const PythonParameter& self) { return self.parameter()->is_layerwise(); },
          [](const PythonParameter& self, bool is_layerwise) {
            self.parameter()->set_layerwise(is_layerwise);
          },
          "Whether each worker has one of its own, which training with other workers refuses.")
      .def_prop_ro(
          "_is_piece", [](const PythonParameter& self) { return self.file != nullptr; },
          "Whether it was read from a file that says that it is a piece of a parameter.")
      .def("set_data", &set_data, nb::arg("data"), nb::arg("slice_shape") = false,
           nb::sig("def set_data(self, data: object, slice_shape: bool = False) -> typing.Self"),
           "Copies `data` in, cast to the parameter's dtype; what initializer() gave fills it. ValueError "
           "when the shape is another one. Gives the parameter.")
      .def("clone", &cloned, nb::arg("init") = "same",
           nb::sig("def clone(self, init: object = 'same') -> Tensor"),
           "Another parameter of this name, shape and dtype: with equal elements, or filled as `init` says. "
           "Where gradients are noted, in construct, equal elements are a Tensor through which they flow.")
      .def_prop_ro(
          "data", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def data(self) -> Parameter"),
          "The parameter itself.")
      .def(
          "value",
          [](const PythonParameter& self) {
            const graph::Value& value = self;
            // Elements alone would cut the gradient off. A graph reads them where value() stands.
            if (graph::is_tracing()) return copied(value);
            return graph::is_taping() ? value : graph::Value(elements_of(value));
          },
          "The elements as a Tensor, which follows the updates.")
      .def("set_param_ps", &set_param_ps, nb::arg("init_in_server") = false,
           "The parameter lives on the job's parameter servers, which update it by its optimizer's rule with "
           "the mean of all workers' gradients. After set_ps_context(enable_ps=True) and init(), else "
           "RuntimeError. `init_in_server`, for names that end in 'embedding_table', changes nothing: the "
           "values are the same.")
      .def(
          "_mark_table", [](const PythonParameter& self) { self.parameter()->mark_table(); },
          "Only rows of it are read, by _core._look_up: set_param_ps leaves all of it to the servers.")
      .def(
          "_put_on_servers",
          [](const PythonParameter& self, std::int64_t cached_rows) {
            put_on_servers(self.parameter(), false, {.cached_rows = cached_rows});
          },
          nb::arg("cached_rows"), "set_param_ps of a table of which a worker keeps rows.")
      .def_prop_ro(
          "_address",
          [](const PythonParameter& self) { return reinterpret_cast<std::intptr_t>(self.parameter().get()); },
          "The same for all objects of one parameter (muster/_copies.py).")
      .def(
          "_watch", [](const PythonParameter& self) { return ParameterWatch{self.parameter()}; },
          "Tells whether the parameter is still there (mindspore/_tensors.py).")
      .def("__reduce__",
           [](const PythonParameter& self) {
             const graph::Value value(elements_of(self).clone());
             return nb::make_tuple(
                 nb::type<PythonParameter>(),
                 nb::make_tuple(value, self.parameter()->name(), self.parameter()->requires_grad(),
                                self.parameter()->is_layerwise()));
           })
      .def("__repr__",
           [](const PythonParameter& self) {
             const graph::Parameter& own = *self.parameter();
             return fmt::format("Parameter(name='{}', shape={}, dtype={}, requires_grad={})", own.name(),
                                to_string(own.shape()), to_string(own.dtype()),
                                own.requires_grad() ? "True" : "False");
           })
      .def("__hash__", [](nb::handle self) { return reinterpret_cast<std::intptr_t>(self.ptr()) >> 4; });
  core.def(
      "_look_up",
      [](const PythonParameter& table, nb::handle ids) {
        return tensor_result(
            graph::look_up(table.parameter(), value_from(ids, nullptr), graph::OutOfRange::zeros));
      },
      nb::arg("table"), nb::arg("ids"),
      "Rows of a table of embeddings, here or on parameter servers; zeros for ids that it does not have.");
  core.def(
      "_look_up_ahead",
      [](const PythonParameter& table, nb::handle ids) {
        unwrap(train::look_up_ahead(table.parameter(), value_from(ids, nullptr).read().value()));
      },
      nb::arg("table"), nb::arg("ids"), "What the next training step will look up: nn.Embedding.prefetch.");
}

}  // namespace muster::python
