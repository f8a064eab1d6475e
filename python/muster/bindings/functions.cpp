// value_and_grad and jit.
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/guards.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/process.h"
#include "python/muster/bindings/traced_function.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

std::string name_of(nb::handle code) {
  const nb::object name = nb::getattr(code, "__name__", nb::none());
  return nb::cast<std::string>(nb::str(name.is_none() ? code.type().attr("__name__") : name));
}

TracedFunction::Code calling(nb::object code) {
  if (PyCallable_Check(code.ptr()) == 0) throw nb::type_error("fn must be a function or a cell");
  return [code = std::move(code)](nb::handle positional, nb::handle keywords) {
    guard(code);
    nb::object result = nb::steal(PyObject_Call(code.ptr(), positional.ptr(), keywords.ptr()));
    if (!result.is_valid()) throw nb::python_error();
    return result;
  };
}

// Which gradients are wanted, and in what form.
struct Wanted {
  std::vector<std::size_t> positions;  // of arguments
  bool one_position = false;
  bool any_position = false;
  std::vector<graph::ParameterPtr> parameters;
  bool one_parameter = false;
  bool any_parameter = false;
};

std::vector<std::size_t> positions_from(nb::handle position) {
  std::vector<std::size_t> positions;
  const auto add = [&](nb::handle item) {
    const auto value = nb::cast<std::int64_t>(item);
    if (value < 0) throw nb::value_error("grad_position counts arguments from 0");
    positions.push_back(static_cast<std::size_t>(value));
  };
  if (PyLong_Check(position.ptr()))
    add(position);
  else
    for (const nb::handle item : nb::iter(position)) add(item);
  return positions;
}

Wanted wanted_from(nb::handle grad_position, nb::handle weights) {
  Wanted wanted;
  wanted.any_position = !grad_position.is_none();
  wanted.any_parameter = !weights.is_none();
  if (!wanted.any_position && !wanted.any_parameter)
    throw nb::value_error("value_and_grad needs grad_position, weights, or both: gradients of what?");
  if (wanted.any_position) {
    wanted.positions = positions_from(grad_position);
    wanted.one_position = PyLong_Check(grad_position.ptr());
  }
  if (wanted.any_parameter) {
    wanted.one_parameter = nb::isinstance<PythonParameter>(weights);
    wanted.parameters = parameters_from(wanted.one_parameter ? nb::make_tuple(weights) : nb::borrow(weights),
                                        "value_and_grad(weights)");
  }
  return wanted;
}

nb::object one_or_tuple(std::span<const graph::Value> values, bool one) {
  if (one) return value_object(values.front());
  return tuple_of(values, &value_object);
}

// What is called in it, in a trace, may be what the trace has called before.
class TracedGradient {
 public:
  TracedGradient() : in_trace_(graph::is_tracing()) { process().traced_gradients += in_trace_; }
  TracedGradient(const TracedGradient&) = delete;
  TracedGradient& operator=(const TracedGradient&) = delete;
  ~TracedGradient() { process().traced_gradients -= in_trace_; }

 private:
  int in_trace_;
};

// The callable that value_and_grad returns.
class GradientFunction {
 public:
  GradientFunction(nb::object code, Wanted wanted, bool has_aux)
      : name_(name_of(code)), code_(std::move(code)), wanted_(std::move(wanted)), has_aux_(has_aux) {}

  nb::any call(const nb::args& positional, const nb::kwargs& keywords) {
    const Arguments arguments(positional, keywords);
    const TracedGradient in_trace;
    auto [result, gradients] = function_for(arguments).call(arguments);
    return nb::borrow<nb::any>(nb::make_tuple(std::move(result), formed(arguments, gradients)));
  }

  std::span<const graph::TraceRecord> traces() const {
    if (function_ == nullptr) return {};
    return function_->function().traces();
  }

 private:
  // Positions of arguments are positions of inputs only as long as every argument before is one tensor.
  TracedFunction& function_for(const Arguments& arguments) {
    Sought sought{.parameters = wanted_.parameters};
    for (const std::size_t position : wanted_.positions) sought.add(arguments.of_position(position));
    if (function_ == nullptr || sought != sought_) {
      function_ = std::make_unique<TracedFunction>(name_, calling(code_), [&](graph::Body body) {
        return graph::value_and_grad(name_, std::move(body),
                                     {.parameters = sought.parameters,
                                      .positions = sought.inputs,
                                      .has_aux = has_aux_,
                                      .losses = [this] { return function_->result_count(); }});
      });
      sought_ = std::move(sought);
    }
    return *function_;
  }

  // Gradients come for the inputs, then for the parameters.
  nb::object formed(const Arguments& arguments, std::span<const graph::Value> gradients) const {
    const auto of_parameters = gradients.subspan(sought_.inputs.size());
    graph::Values weights;
    for (std::size_t i = 0; i < wanted_.parameters.size(); ++i)
      weights.push_back(wanted_.parameters[i]->requires_grad() ? of_parameters[i]
                                                               : zeros_like(of_parameters[i]));
    if (!wanted_.any_position) return one_or_tuple(weights, wanted_.one_parameter);
    nb::object positions = of_positions(arguments, gradients.first(sought_.inputs.size()), of_parameters);
    if (!wanted_.any_parameter) return positions;
    return nb::make_tuple(std::move(positions), one_or_tuple(weights, wanted_.one_parameter));
  }

  nb::object of_positions(const Arguments& arguments, std::span<const graph::Value> inputs,
                          std::span<const graph::Value> parameters) const {
    nb::list made;
    for (std::size_t i = 0; i < wanted_.positions.size(); ++i) {
      const Sought::Place& place = sought_.places[i];
      if (place.is_parameter)
        made.append(value_object(parameters[place.first]));
      else
        made.append(arguments.argument_with(wanted_.positions[i], inputs.subspan(place.first, place.count)));
    }
    return wanted_.one_position ? nb::object(made[0]) : nb::object(nb::tuple(made));
  }

  static graph::Value zeros_like(const graph::Value& value) {
    return graph::apply("fill", {},
                        {{"shape", value.shape().sizes()}, {"value", 0.0}, {"dtype", value.dtype()}});
  }

  // What gradients are taken for, and where that of each position is found.
  struct Sought {
    struct Place {
      bool is_parameter = false;
      std::size_t first = 0, count = 1;
      bool operator==(const Place&) const = default;
    };
    std::vector<graph::ParameterPtr> parameters;
    std::vector<std::size_t> inputs = {};
    std::vector<Place> places = {};

    void add(const Arguments::Position& position) {
      if (position.parameter != nullptr) {
        const auto found = std::find(parameters.begin(), parameters.end(), position.parameter);
        places.push_back(
            {.is_parameter = true, .first = static_cast<std::size_t>(found - parameters.begin())});
        if (found == parameters.end()) parameters.push_back(position.parameter);
        return;
      }
      places.push_back({.first = inputs.size(), .count = position.count});
      for (std::size_t i = 0; i < position.count; ++i) inputs.push_back(position.first + i);
    }
    bool operator==(const Sought&) const = default;
  };

  std::string name_;
  nb::object code_;
  Wanted wanted_;
  bool has_aux_;
  Sought sought_;
  std::unique_ptr<TracedFunction> function_;
};

// The callable that jit returns.
class CompiledFunction {
 public:
  explicit CompiledFunction(nb::object code)
      : function_(name_of(code), calling(code), [name = name_of(code)](graph::Body body) {
          return function_around(name, std::move(body));
        }) {}

  nb::any call(const nb::args& positional, const nb::kwargs& keywords) {
    return nb::borrow<nb::any>(function_.call(Arguments(positional, keywords)).result);
  }

  std::span<const graph::TraceRecord> traces() const { return function_.function().traces(); }

 private:
  TracedFunction function_;
};

nb::typed<nb::list, nb::dict> traces_list(std::span<const graph::TraceRecord> records) {
  nb::list made;
  for (const graph::TraceRecord& record : records) {
    nb::dict entry;
    entry["signature"] = record.signature;
    entry["reason"] = record.reason;
    entry["nodes"] = record.nodes;
    entry["seconds"] = std::chrono::duration<double>(record.duration).count();
    made.append(entry);
  }
  return made;
}

template <class F>
void bind_function(nb::module_& core, const char* name, const char* doc) {
  nb::class_<F>(core, name, doc)
      .def("__call__", &F::call, nb::arg("args"), nb::arg("kwargs"))
      .def_prop_ro(
          "traces", [](const F& self) { return traces_list(self.traces()); },
          "Each trace so far: a dict with signature, reason, nodes and seconds.");
}

}  // namespace

void bind_functions(nb::module_& core) {
  bind_function<GradientFunction>(
      core, "GradientFunction",
      "What value_and_grad returns: call it like the function that it was made from.");
  bind_function<CompiledFunction>(core, "CompiledFunction",
                                  "What jit returns: call it like the function that it was made from.");
  core.def(
      "value_and_grad",
      [](nb::object fn, nb::handle grad_position, nb::handle weights, bool has_aux) {
        return std::make_unique<GradientFunction>(std::move(fn), wanted_from(grad_position, weights),
                                                  has_aux);
      },
      nb::arg("fn"), nb::arg("grad_position").none() = 0, nb::arg("weights") = nb::none(),
      nb::arg("has_aux") = false,
      nb::sig("def value_and_grad(fn: collections.abc.Callable, grad_position: int | tuple[int, ...] | None "
              "= 0, weights: Parameter | collections.abc.Iterable[Parameter] | None = None, has_aux: bool = "
              "False) -> GradientFunction"),
      "A function that returns (value, gradients): the value of `fn`, and the gradients of its result (with "
      "`has_aux` of the first tensor of its result only) for the arguments at `grad_position` (a number or a "
      "tuple of numbers) and for the parameters in `weights`. One number or one Parameter gives one "
      "gradient, several give a tuple, both kinds give a pair. `fn` is traced once for each signature of its "
      "arguments.");
  core.def(
      "jit", [](nb::object fn) { return std::make_unique<CompiledFunction>(std::move(fn)); }, nb::arg("fn"),
      nb::sig("def jit(fn: collections.abc.Callable) -> CompiledFunction"),
      "`fn` traced once for each signature of its arguments and run as a compiled plan.");
}

}  // namespace muster::python
