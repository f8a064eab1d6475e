#include "python/muster/bindings/cell.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/graph/host_function.h"
#include "muster/train/train.h"
#include "python/muster/bindings/arguments.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/guards.h"
#include "python/muster/bindings/initializer.h"
#include "python/muster/bindings/optimizer_arguments.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/process.h"
#include "python/muster/bindings/results.h"
#include "python/muster/bindings/tensor_text.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using nn::Cell;
using nn::CellPtr;

// ---- Attributes: children and parameters register themselves ----------------------------------------------

bool has_parameter(const Cell& cell, const std::string& name) {
  for (const auto& [own, parameter] : cell.own_parameters())
    if (own == name) return true;
  return false;
}

bool has_child(const Cell& cell, const std::string& name) {
  for (const auto& [own, child] : cell.children())
    if (own == name) return true;
  return false;
}

bool contains(const Cell& tree, const Cell& cell) {
  if (&tree == &cell) return true;
  for (const auto& [name, child] : tree.children())
    if (contains(*child, cell)) return true;
  return false;
}

void require_ready(nb::handle self) {
  if (nb::inst_ready(self)) return;
  const auto type = class_name(self);
  throw nb::attribute_error(
      (type + ".__init__ must call super().__init__() before it sets cells or parameters").c_str());
}

// What a built-in cell made is used by C++: one in its place would be ignored, unless the cell looks after
// it.
void refuse_replacing_built_in(nb::handle self, const Cell& cell, const std::string& name, nb::handle value) {
  const bool is_registered = has_parameter(cell, name) || has_child(cell, name);
  const bool by_python = PyDict_Contains(self.attr("__dict__").ptr(), nb::str(name.c_str()).ptr()) == 1;
  const bool is_parameter = value.is_valid() && nb::isinstance<PythonParameter>(value);
  if (cell.keeps_param(name) ? is_parameter : !is_registered || by_python) return;
  throw nb::attribute_error((cell.description() + " made '" + name +
                             "' itself and needs it; a parameter may be replaced by a Parameter, and takes "
                             "new values from a Tensor or by set_data()")
                                .c_str());
}

// A property of the class knows itself what writing it means.
bool is_property(nb::handle self, nb::handle name) {
  const nb::object found = nb::steal(PyObject_GetAttr(self.type().ptr(), name.ptr()));
  if (!found.is_valid()) PyErr_Clear();
  return found.is_valid() && Py_TYPE(found.ptr())->tp_descr_set != nullptr;
}

void set_plainly(nb::handle self, nb::handle name, nb::handle value) {
  if (PyObject_GenericSetAttr(self.ptr(), name.ptr(), value.ptr()) != 0) throw nb::python_error();
}

// MindSpore's tuple of parameters, which are those of the cell that it is set on. A plain tuple or list is
// not.
bool is_parameter_tuple(nb::handle value) {
  return PyTuple_Check(value.ptr()) && !PyTuple_CheckExact(value.ptr()) &&
         nb::hasattr(value.type(), "_is_of_cell");
}

// Those of a tuple that the attribute was until now.
void remove_tuple(Cell& cell, nb::handle self, nb::handle name) {
  const nb::dict attributes = nb::borrow<nb::dict>(self.attr("__dict__"));
  if (!attributes.contains(name) || !is_parameter_tuple(attributes[name])) return;
  for (const nb::handle parameter : nb::iter(attributes[name]))
    for (const auto& [own, known] : Cell::Parameters(cell.own_parameters()))
      if (known == nb::cast<const PythonParameter&>(parameter).parameter()) cell.remove(own);
}

void insert_tuple(Cell& cell, nb::handle tuple, const std::string& name) {
  std::size_t number = 0;
  for (const nb::handle object : nb::iter(tuple)) {
    const graph::ParameterPtr& parameter = nb::cast<const PythonParameter&>(object).parameter();
    if (parameter->name().empty()) parameter->rename(name + "$" + std::to_string(number));
    cell.insert_param(parameter->name(), parameter);  // whole: two tuples may have a "0" each
    ++number;
  }
}

// Whether the value is written into the parameter of that name, which stays.
bool sets_data(const Cell& cell, const std::string& name, nb::handle value) {
  if (!has_parameter(cell, name) || nb::isinstance<PythonParameter>(value) || value.is_none()) return false;
  if (is_value(value)) return true;
  const std::string type = class_name(value);
  throw nb::type_error((cell.description() + ": '" + name +
                        "' is a Parameter, and takes a Tensor, another "
                        "Parameter or None, not " +
                        type)
                           .c_str());
}

void register_value(Cell& cell, const std::string& name, nb::handle value) {
  if (nb::isinstance<Cell>(value)) {
    if (has_parameter(cell, name)) cell.remove(name);
    const CellPtr child = nb::cast<CellPtr>(value);
    refuse_cycle(cell, *child);
    cell.insert_child(name, child);
  } else if (nb::isinstance<PythonParameter>(value)) {
    if (has_child(cell, name)) cell.remove(name);
    const graph::ParameterPtr parameter = nb::cast<const PythonParameter&>(value).parameter();
    if (parameter->name().empty()) parameter->rename(name);
    cell.insert_param(name, parameter);
  } else if (is_parameter_tuple(value)) {
    cell.remove(name);
    insert_tuple(cell, value, name);
  } else {
    cell.remove(name);
    // A write during a trace is a part of the code that runs once a trace; the trace it is in stays valid.
    if (!graph::is_tracing()) cell.touch(fmt::format("attribute '{}' was set", name));
  }
}

// A list of cells calls what stands at its places, so that another cell may stand there: setattr(net, "1",
// cell).
bool takes_place(Cell& cell, const std::string& name, nb::handle value) {
  if (dynamic_cast<nn::CellSequence*>(&cell) == nullptr || !has_child(cell, name)) return false;
  if (!nb::isinstance<Cell>(value)) return false;
  register_value(cell, name, value);
  return true;
}

void set_attribute(nb::handle self, nb::str name_object, nb::handle value) {
  const bool registers = nb::isinstance<Cell>(value) || nb::isinstance<PythonParameter>(value);
  if (registers) require_ready(self);
  if (!nb::inst_ready(self) || is_property(self, name_object)) return set_plainly(self, name_object, value);
  Cell& cell = nb::cast<Cell&>(self);
  const std::string name = name_object.c_str();
  if (sets_data(cell, name, value)) {
    const nb::object parameter = nb::getattr(self, name_object);
    if (unfilled(value) != nullptr)
      parameter.attr("set_data")(value);
    else
      set_value(parameter, nb::cast<const graph::Value&>(value));
    return;
  }
  if (takes_place(cell, name, value)) return;
  if (graph::may_fall_back() && holds_traced(value)) leave_trace(fmt::format("attribute '{}'", name));
  refuse_replacing_built_in(self, cell, name, value);
  if (auto* const optimizer = dynamic_cast<nn::RowOptimizer*>(&cell))
    set_argument_from(*optimizer, name, value);
  remove_tuple(cell, self, name_object);
  set_plainly(self, name_object, value);
  register_value(cell, name, value);
}

void delete_attribute(nb::handle self, nb::str name_object) {
  require_ready(self);
  Cell& cell = nb::cast<Cell&>(self);
  const std::string name = name_object.c_str();
  refuse_replacing_built_in(self, cell, name, nb::handle());
  remove_tuple(cell, self, name_object);
  if (PyObject_GenericSetAttr(self.ptr(), name_object.ptr(), nullptr) != 0) throw nb::python_error();
  cell.remove(name);
  cell.touch(fmt::format("attribute '{}' was deleted", name));
}

// Called for names that Python does not find: what built-in cells registered in C++.
nb::any missing_attribute(nb::handle self, const std::string& name) {
  if (nb::inst_ready(self)) {
    const Cell& cell = nb::cast<const Cell&>(self);
    for (const auto& [own, parameter] : cell.own_parameters())
      if (own == name) return nb::borrow<nb::any>(parameter_object(parameter));
    for (const auto& [own, child] : cell.children())
      if (own == name) return nb::borrow<nb::any>(nb::cast(child));
  }
  const auto type = class_name(self);
  throw nb::attribute_error(("'" + type + "' has no attribute '" + name + "'").c_str());
}

[[noreturn]] void refuse_without_construct(const Cell& cell) {
  raise(Error{Code::invalid_argument, cell.description() + " defines no construct, so it cannot be called"});
}

void set_param_ps(const Cell& cell, bool recurse, bool init_in_server) {
  std::vector<graph::ParameterPtr> marked;
  if (recurse)
    marked = cell.trainable_params();
  else
    for (const auto& [name, parameter] : cell.own_parameters())
      if (parameter->requires_grad()) marked.push_back(parameter);
  for (const graph::ParameterPtr& parameter : marked) put_on_servers(parameter, init_in_server);
}

nb::typed<nb::list, Cell> children_of(const Cell& cell) {
  nb::list made;
  for (const auto& [name, child] : cell.children()) made.append(child);
  return made;
}

nb::typed<nb::dict, nb::str, Cell> named_children(const Cell& cell) {
  nb::dict made;
  for (const auto& [name, child] : cell.children()) made[name.c_str()] = nb::cast(child);
  return made;
}

nb::typed<nb::list, nb::typed<nb::tuple, nb::str, Cell>> named_cells(nb::object self,
                                                                     const std::string& prefix) {
  nb::list made;
  made.append(nb::make_tuple(prefix, self));
  for (const auto& [path, cell] : nb::cast<const Cell&>(self).descendants())
    made.append(nb::make_tuple(prefix.empty() ? path : prefix + "." + path, cell));
  return made;
}

nb::typed<nb::list, nb::typed<nb::tuple, nb::str, PythonParameter>> named_parameters(
    const Cell& cell, const std::string& prefix, bool expand) {
  nb::list made;
  for (const auto& [name, parameter] : expand ? cell.parameters_and_names() : cell.own_parameters())
    made.append(nb::make_tuple(prefix.empty() ? name : prefix + "." + name, parameter_object(parameter)));
  return made;
}

// Own parameters, or those of the whole tree; of those the ones that require a gradient, or not.
nb::typed<nb::list, PythonParameter> some_parameters(const Cell& cell, bool recurse,
                                                     std::optional<bool> trainable) {
  std::vector<graph::ParameterPtr> found;
  for (const auto& [name, parameter] : recurse ? cell.parameters_and_names() : cell.own_parameters())
    if (!trainable || parameter->requires_grad() == *trainable) found.push_back(parameter);
  return parameter_objects(found);
}

void insert_param(nb::handle self, const std::string& name, nb::handle parameter) {
  if (!nb::isinstance<PythonParameter>(parameter)) {
    const std::string type = class_name(parameter);
    throw nb::type_error(("insert_param_to_cell takes a Parameter, not " + type).c_str());
  }
  if (name.empty() || name.find('.') != std::string::npos)
    throw nb::key_error(("insert_param_to_cell: '" + name + "' is no name of an attribute").c_str());
  nb::setattr(self, name.c_str(), parameter);
}

// The prefix, with its dot, and the place in the cell, whatever the parameter was called before.
void update_names(Cell& cell, const std::string& prefix) {
  const std::string path = prefix.ends_with('.') ? prefix.substr(0, prefix.size() - 1) : prefix;
  if (path.empty()) throw nb::value_error("update_parameters_name: the prefix is empty");
  cell.prefix_names(path);
  for (const auto& [place, parameter] : cell.parameters_and_names()) parameter->rename(prefix + place);
}

nb::typed<nb::dict, nb::str, PythonParameter> parameters_dict(const Cell& cell, bool recurse) {
  nb::dict made;
  for (const auto& [path, parameter] : recurse ? cell.parameters_and_names() : cell.own_parameters())
    made[parameter->name().c_str()] = parameter_object(parameter);
  return made;
}

}  // namespace

bool has_hooks(nb::handle self) {
  static PyObject* const name = PyUnicode_InternFromString("_hooks");
  if (!process().hook_caller.is_valid()) return false;
  PyObject** attributes = _PyObject_GetDictPtr(self.ptr());
  return attributes != nullptr && *attributes != nullptr && PyDict_Contains(*attributes, name) == 1;
}

nb::object with_hooks(nb::handle self, const nn::Cell& cell, nb::handle positional, nb::handle keywords,
                      const std::function<nb::object(nb::handle, nb::handle)>& construct) {
  if (graph::is_tracing()) {
    graph::note_untraceable();
    throw Exception(Code::invalid_argument,
                    cell.description() +
                        " has hooks, which are called with elements: a graph has none while it "
                        "is made, so use set_context(mode='eager')");
  }
  const nb::object plain = nb::cpp_function(
      [&construct](const nb::tuple& args, const nb::dict& kwargs) { return construct(args, kwargs); });
  return process().hook_caller(self, plain, positional, keywords);
}

nb::object call_in_sequence(const nn::Cell& cell, const nb::args& inputs) {
  nb::object result = inputs.size() == 1 ? nb::object(inputs[0]) : nb::object(nb::borrow<nb::tuple>(inputs));
  bool is_first = true;
  for (const auto& [name, child] : nn::Cell::Children(cell.children())) {
    const nb::object object = nb::cast(child);
    result = std::exchange(is_first, false) ? nb::object(object(*inputs)) : nb::object(object(result));
  }
  return result;
}

void KeepsArguments::postcall(PyObject** args, std::size_t count, nb::handle) {
  nb::list given;
  for (std::size_t i = 1; i < count; ++i) given.append(nb::handle(args[i]));
  nb::handle(args[0]).attr("__dict__")["_made_with"] = nb::tuple(given);
}

void refuse_cycle(const Cell& parent, const Cell& child) {
  if (contains(child, parent))
    raise(Error{Code::invalid_argument, child.description() + " cannot become a child of " +
                                            parent.description() + ", which it contains"});
}

graph::Values tensors_of(const nb::args& arguments, const Cell& cell) {
  graph::Values values;
  const auto add = [&](nb::handle argument) {
    if (!is_value(argument)) {
      const auto type = class_name(argument);
      throw nb::type_error((cell.description() + " takes tensors, not " + type).c_str());
    }
    values.push_back(nb::cast<const graph::Value&>(argument));
  };
  for (const nb::handle argument : arguments)
    if (nb::isinstance<nb::tuple>(argument) || nb::isinstance<nb::list>(argument))
      for (const nb::handle part : nb::iter(argument)) add(part);
    else
      add(argument);
  return values;
}

void bind_cell(nb::module_& core) {
  nb::class_<Cell, Trampoline<Cell>>(
      core, "Cell", nb::dynamic_attr(), nb::is_weak_referenceable(),
      "A piece of a network with parameters and children. Subclass it: set children and parameters as "
      "attributes in __init__ after super().__init__(), and compute in construct(self, *inputs), which is "
      "traced: it runs once for each signature of its arguments, on tensors without elements. A gradient of "
      "the cell's own is bprop(self, *inputs, out, dout): it takes what construct took, what that gave, and "
      "the gradient of it, and gives a tuple of the gradients of the inputs, which take the place of "
      "construct's.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<Cell> self, nb::handle auto_prefix) {
            make_cell(self, class_name(self.h)).set_auto_prefix(nb::cast<bool>(nb::bool_(auto_prefix)));
          },
          keeps_arguments, nb::arg("auto_prefix") = true,
          nb::sig("def __init__(self, auto_prefix: bool = True) -> None"),
          "Without `auto_prefix` the parameters of children keep their names.")
      .def("__call__", &call_cell, nb::arg("args"), nb::arg("kwargs"),
           "What construct computes, through a plan made once for each signature.")
      .def(
          "construct",
          [](const Cell& self, const nb::args&, const nb::kwargs&) { refuse_without_construct(self); },
          nb::arg("args"), nb::arg("kwargs"), nb::sig("def construct(self, *args, **kwargs) -> typing.Any"),
          "What the cell computes; subclasses define it.")
      .def("__setattr__", &set_attribute, nb::arg("name"), nb::arg("value").none())
      .def("__delattr__", &delete_attribute, nb::arg("name"))
      .def("__getattr__", &missing_attribute, nb::arg("name"))
      .def("__repr__", [](const Cell& self) { return nn::to_string(self); })
      .def(
          "cells", [](const Cell& self) { return children_of(self); }, "The children.")
      .def("name_cells", &named_children, "The children by their names.")
      .def("cells_and_names", &named_cells, nb::arg("name_prefix") = "",
           "(path, cell) for this cell, whose path is '', and all below, each once.")
      .def(
          "get_parameters", [](const Cell& self, bool expand) { return some_parameters(self, expand, {}); },
          nb::arg("expand") = true,
          "All parameters of the tree, each once: own before children's, in the order of insertion. Without "
          "`expand` only its own.")
      .def(
          "trainable_params",
          [](const Cell& self, bool recurse) { return some_parameters(self, recurse, true); },
          nb::arg("recurse") = true, "The parameters of the tree that require a gradient.")
      .def(
          "untrainable_params",
          [](const Cell& self, bool recurse) { return some_parameters(self, recurse, false); },
          nb::arg("recurse") = true, "The parameters of the tree that require no gradient.")
      .def("parameters_and_names", &named_parameters, nb::arg("name_prefix") = "", nb::arg("expand") = true,
           "(path, parameter) for each parameter of the tree.")
      .def("parameters_dict", &parameters_dict, nb::arg("recurse") = true,
           "The parameters of the tree by their names.")
      .def(
          "init_parameters_data",
          [](const Cell& self, bool) {
            for (const auto& parameter : self.parameters())
              if (parameter->absence() == nullptr) parameter->materialize(train::seed());
            return parameters_dict(self, true);
          },
          nb::arg("auto_parallel_mode") = false,
          "Makes the elements of all parameters now. Gives the parameters by their names.")
      .def(
          "insert_child_to_cell",
          [](nb::handle self, const std::string& name, nb::handle cell) {
            if (!nb::isinstance<Cell>(cell)) {
              const std::string type = class_name(cell);
              throw nb::type_error(("insert_child_to_cell takes a cell, not " + type).c_str());
            }
            nb::setattr(self, name.c_str(), cell);
          },
          nb::arg("child_name"), nb::arg("child_cell"), "Adds a child, which is an attribute too.")
      .def(
          "insert_param_to_cell",
          [](nb::handle self, const std::string& name, nb::handle parameter, bool) {
            insert_param(self, name, parameter);
          },
          nb::arg("param_name"), nb::arg("param"), nb::arg("check_name_contain_dot") = true,
          "Adds a parameter, which is an attribute too.")
      .def(
          "update_parameters_name",
          [](Cell& self, const std::string& prefix, bool) { update_names(self, prefix); },
          nb::arg("prefix") = "", nb::arg("recurse") = true,
          "Names all parameters by `prefix` and their place: 'net.' gives 'net.fc.weight'.")
      .def(
          "set_grad", [](nb::object self, bool) { return self; }, nb::arg("requires_grad") = true,
          nb::sig("def set_grad(self, requires_grad: bool = True) -> typing.Self"),
          "Changes nothing, as for the gradients that MindSpore computes: they are those that value_and_grad "
          "is asked for, by bprop where the cell defines one. Returns the cell.")
      .def_prop_ro(
          "cls_name", [](const Cell& self) { return self.class_name(); }, "The name of its class.")
      .def_prop_ro(
          "param_prefix", [](const Cell& self) { return self.path(); },
          "The path of the cell in its parents, as 'block.fc'; '' for a root.")
      .def(
          "set_train",
          [](nb::object self, bool mode) {
            nb::cast<Cell&>(self).Cell::set_train(mode);  // what super().set_train(...) calls
            return self;
          },
          nb::arg("mode") = true, nb::sig("def set_train(self, mode: bool = True) -> typing.Self"),
          "This cell and all below train, or with False evaluate. Returns the cell.")
      .def(
          "to_float",
          [](nb::object self, nb::handle dst_type) {
            unwrap(nb::cast<Cell&>(self).to_float(dtype_from(dst_type)));
            return self;
          },
          nb::arg("dst_type"), nb::sig("def to_float(self, dst_type: DType | str) -> typing.Self"),
          "This cell and all below compute in `dst_type`, float32 or bfloat16: their inputs and the "
          "parameters that they use are cast to it. Parameters themselves stay float32, and BatchNorm and "
          "LayerNorm compute in float32. A later call counts, also one for a part of the tree. Returns the "
          "cell. ValueError for another dtype; NotImplementedError names the instructions that the processor "
          "lacks.")
      .def(
          "place",
          [](nb::object self, const std::string& role, std::int64_t rank) {
            unwrap(nb::cast<Cell&>(self).place_at(role, rank, caller_line()));
            return self;
          },
          nb::arg("role"), nb::arg("rank"), nb::sig("def place(self, role: str, rank: int) -> typing.Self"),
          "Where the cell runs in a job that divides its network over the workers: on the worker of that "
          "rank. Its parameters, their gradients and their optimizer state live there only. Cells inside of "
          "it that are placed themselves run where they are placed; other ops are assigned to the workers "
          "that minimise communication. Without init(), or in a cluster of one, it changes nothing. `role` "
          "is 'MS_WORKER'. Returns the cell. ValueError names the cell, the line and the choices: for "
          "another role, a rank that no worker has, and in eager mode in a cluster, where ops run one by one "
          "and nothing can be divided.")
      .def(
          "recompute",
          [](nb::handle self, bool mode) {
            nb::cast<Cell&>(self).set_recompute(mode);
            return nb::borrow(self);
          },
          nb::arg("mode") = true, nb::sig("def recompute(self, mode: bool = True) -> typing.Self"),
          "The backward pass computes again what this cell and those below compute, instead of keeping it: "
          "the same bits, more time, less memory. What writes parameters (moving statistics) or takes part "
          "in collective calls is kept. No effect in eager mode. Gives the cell.")
      .def_prop_ro("_recomputes", &Cell::recomputes)
      .def("_held_bytes",
           [](const Cell& self) {
             std::size_t bytes = 0;
             for (const auto& parameter : self.parameters())
               if (parameter->absence() == nullptr) bytes += parameter->held_type().size_bytes();
             return bytes;
           })
      .def_prop_ro(
          "placed_rank",
          [](const Cell& self) { return self.placed() ? std::optional(self.placed()->rank) : std::nullopt; },
          "The worker of place(); None where the cell itself was not placed.")
      .def("set_param_ps", &set_param_ps, nb::arg("recurse") = true, nb::arg("init_in_server") = false,
           "Parameter.set_param_ps for all trainable parameters of the cell, and with `recurse` of the cells "
           "in it.")
      .def_prop_rw(
          "training", [](const Cell& self) { return self.training(); },
          [](Cell& self, bool training) {
            nn::CellState state = self.state();
            state.training = training;
            self.restore(std::move(state));
          },
          "Whether the cell trains; setting it leaves the cells below as they are.");
  core.def(
      "_set_hook_caller", [](nb::object caller) { process().hook_caller = std::move(caller); },
      nb::arg("caller"),
      "caller(cell, construct, args, kwargs) calls construct between the hooks of the cell.");
}

}  // namespace muster::python
