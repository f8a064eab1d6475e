#include "python/muster/bindings/op_functions.h"

#include <fmt/format.h>
#include <structmember.h>

#include <array>
#include <utility>

#include "python/muster/bindings/op_arguments.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::FunctionParameter;
using graph::Op;

constexpr std::size_t parameters_max = 8;

// A function with what calls need: for as long as the process runs, as rows live.
struct MadeFunction {
  OpFunction function;
  std::vector<nb::object> names;  // interned: keywords are found by address
  bool is_method = false;
  std::size_t required = 0;  // so many have to be given: a default before one without it does not count
};

// The Python object: calls go to `vectorcall` with arguments on the stack, so that nothing is allocated.
struct OpFunctionObject {
  PyObject base;
  vectorcallfunc vectorcall;
  const MadeFunction* made;
};

const MadeFunction& made_of(PyObject* object) { return *reinterpret_cast<OpFunctionObject*>(object)->made; }

// "softmax(x: Tensor | bool | int | float, axis: int = -1)"; without types for messages and inspect.
std::string parameters_text(const MadeFunction& made, bool with_types) {
  std::string text;
  const auto& parameters = made.function.parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (i > 0) text += ", ";
    if (i == 0 && made.is_method) {
      text += with_types ? "self" : "$self";
      continue;
    }
    text += parameters[i].name;
    if (with_types) text += fmt::format(": {}", python_type(parameters[i]));
    if (i >= made.required)
      text += fmt::format("{}{}", with_types ? " = " : "=", nb::repr(default_of(parameters[i])).c_str());
  }
  return text;
}

std::string usage(const MadeFunction& made) {
  std::string text = parameters_text(made, false);
  if (made.is_method) text.erase(0, text.size() > 5 ? 7 : 5);  // "$self, "
  return fmt::format("{}({})", made.function.name, text);
}

[[noreturn]] void refuse(const MadeFunction& made, const std::string& what) {
  throw nb::type_error(
      fmt::format("{}: {}; it is called as {}", made.function.name, what, usage(made)).c_str());
}

std::size_t place_of(const MadeFunction& made, PyObject* keyword, nb::handle value) {
  for (std::size_t i = 0; i < made.names.size(); ++i)
    if (made.names[i].ptr() == keyword) return i;
  for (std::size_t i = 0; i < made.names.size(); ++i)
    if (PyUnicode_Compare(made.names[i].ptr(), keyword) == 0) return i;
  refuse(made, fmt::format("there is no argument {}={}", nb::str(nb::handle(keyword)).c_str(),
                           nb::repr(value).c_str()));
}

nb::object called(const MadeFunction& made, PyObject* const* arguments, std::size_t count,
                  PyObject* keywords) {
  std::array<nb::handle, parameters_max> given;
  const std::size_t size = made.function.parameters.size();
  if (count > size) refuse(made, fmt::format("{} arguments were given", count - (made.is_method ? 1 : 0)));
  for (std::size_t i = 0; i < count; ++i) given[i] = arguments[i];
  const std::size_t named = keywords == nullptr ? 0 : static_cast<std::size_t>(PyTuple_GET_SIZE(keywords));
  for (std::size_t i = 0; i < named; ++i) {
    PyObject* keyword = PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i));
    nb::handle& place = given[place_of(made, keyword, arguments[count + i])];
    if (place.is_valid())
      refuse(made, fmt::format("{} was given twice", nb::str(nb::handle(keyword)).c_str()));
    place = arguments[count + i];
  }
  for (std::size_t i = count; i < made.required; ++i)
    if (!given[i].is_valid()) refuse(made, fmt::format("{} is missing", made.function.parameters[i].name));
  return call_op_function(made.function, {given.data(), size});
}

// nanobind turns exceptions into Python's around its own functions only.
PyObject* vectorcall(PyObject* self, PyObject* const* arguments, std::size_t count, PyObject* keywords) {
  try {
    return called(made_of(self), arguments, static_cast<std::size_t>(PyVectorcall_NARGS(count)), keywords)
        .release()
        .ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(error.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError,
                    error.what());
  } catch (const Exception& error) {
    set_exception(error.error());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// ---- The types -------------------------------------------------------------------------------------------

PyObject* text_object(const std::string& text) {
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

PyObject* name_of(PyObject* self, void*) { return text_object(std::string(made_of(self).function.name)); }

PyObject* documentation_of(PyObject* self, void*) {
  return text_object(std::string(made_of(self).function.op->documentation));
}

// For inspect and help().
PyObject* text_signature_of(PyObject* self, void*) {
  return text_object(fmt::format("({})", parameters_text(made_of(self), false)));
}

std::string result_type(const Op& op) {
  std::string text = "Tensor";
  for (std::size_t i = 1; i < op.schema.results; ++i) text += ", Tensor";
  return op.schema.results == 1 ? text : fmt::format("tuple[{}]", text);
}

// For stubs, which nanobind writes from this.
PyObject* stub_of(PyObject* self, void*) {
  const MadeFunction& made = made_of(self);
  return text_object(fmt::format("def {}({}) -> {}:\n    \"\"\"{}\"\"\"", made.function.name,
                                 parameters_text(made, true), result_type(*made.function.op),
                                 made.function.op->documentation));
}

PyObject* module_of(PyObject*, void*) { return PyUnicode_FromString("muster._core"); }

PyObject* text_of(PyObject* self) {
  return text_object(fmt::format("<op function {}>", made_of(self).function.name));
}

// A method is bound to the object before the dot, a function is not; help() and inspect know both by their
// `__get__`.
PyObject* bound(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || !made_of(self).is_method) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyGetSetDef properties[] = {{"__name__", name_of, nullptr, nullptr, nullptr},
                            {"__qualname__", name_of, nullptr, nullptr, nullptr},
                            {"__module__", module_of, nullptr, nullptr, nullptr},
                            {"__doc__", documentation_of, nullptr, nullptr, nullptr},
                            {"__text_signature__", text_signature_of, nullptr, nullptr, nullptr},
                            {"__nb_signature__", stub_of, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpFunctionObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

// Of functions of a module, or of a class.
nb::object make_type(bool is_method) {
  std::vector<PyType_Slot> slots = {{Py_tp_dealloc, slot(deallocate)},
                                    {Py_tp_call, slot(PyVectorcall_Call)},
                                    {Py_tp_descr_get, slot(bound)},
                                    {Py_tp_repr, slot(text_of)},
                                    {Py_tp_getset, properties},
                                    {Py_tp_members, members},
                                    {0, nullptr}};
  PyType_Spec spec{is_method ? "muster._core.OpMethod" : "muster._core.OpFunction", sizeof(OpFunctionObject),
                   0,
                   static_cast<unsigned int>(Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                             Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                             (is_method ? Py_TPFLAGS_METHOD_DESCRIPTOR : 0)),
                   slots.data()};
  nb::object type = nb::steal(PyType_FromSpec(&spec));
  if (!type.is_valid()) throw nb::python_error();
  return type;
}

nb::object function_object(OpFunction function, bool is_method) {
  static const nb::handle types[] = {make_type(false).release(), make_type(true).release()};
  auto* made = new MadeFunction{.function = std::move(function), .names = {}, .is_method = is_method};
  MUSTER_CHECK(made->function.parameters.size() <= parameters_max, "an op has too many arguments for Python");
  for (const FunctionParameter& parameter : made->function.parameters) {
    made->names.push_back(nb::steal(PyUnicode_InternFromString(std::string(parameter.name).c_str())));
    if (!has_default(parameter)) made->required = made->names.size();
  }
  auto* type = reinterpret_cast<PyTypeObject*>(types[is_method ? 1 : 0].ptr());
  nb::object object = nb::steal(PyType_GenericAlloc(type, 0));
  if (!object.is_valid()) throw nb::python_error();
  auto* fields = reinterpret_cast<OpFunctionObject*>(object.ptr());
  fields->vectorcall = vectorcall;
  fields->made = made;
  return object;
}

// ---- The names -------------------------------------------------------------------------------------------

// The names in Python of an op's arguments, which may differ from those in C++.
std::vector<FunctionParameter> in_python(std::vector<FunctionParameter> parameters) {
  for (FunctionParameter& parameter : parameters)
    if (parameter.attribute != nullptr && parameter.name == parameter.attribute->name &&
        !parameter.attribute->python.empty())
      parameter.name = parameter.attribute->python;
  return parameters;
}

OpFunction function_of(const Op& op, const graph::Alias& alias) {
  return {.op = &op, .name = alias.name, .parameters = in_python(parameters_of(op, alias.arguments))};
}

// The tensor before the dot stands for the first argument, whatever the names of the others.
OpFunction method_of(const Op& op, const graph::Alias& alias) {
  std::vector<FunctionParameter> parameters = in_python(parameters_of(op, alias.arguments, 1));
  parameters.insert(parameters.begin(), parameters_of(op).front());
  return {.op = &op, .name = alias.name, .parameters = std::move(parameters)};
}

// Its settings by name; then what a call takes, all inputs unless the row says otherwise.
nb::tuple primitive_of(const Op& op, const graph::PrimitiveAlias& primitive) {
  std::vector<FunctionParameter> parameters = parameters_of(op, primitive.arguments);
  if (primitive.arguments.empty()) parameters.resize(op.schema.inputs.size());
  nb::dict settings;
  for (const std::string_view name : primitive.settings) {
    const FunctionParameter setting =
        parameters_of(op, {name}, op.schema.inputs.size() + settings.size()).front();
    settings[nb::str(setting.name.data(), setting.name.size())] =
        has_default(setting) ? default_of(setting) : nb::borrow(Py_Ellipsis);
    parameters.push_back(setting);
  }
  return nb::make_tuple(
      nb::str(primitive.name.data(), primitive.name.size()), settings,
      function_object({.op = &op, .name = primitive.name, .parameters = parameters}, false));
}

void set(nb::handle target, const graph::Alias& alias, nb::object function) {
  nb::setattr(target, std::string(alias.name).c_str(), function);
}

}  // namespace

void bind_op_functions(nb::module_& core) {
  nb::dict functions;
  nb::dict mindspore;
  nb::list primitives;
  for (const Op* op : graph::ops()) {
    if (!op->schema.has_functions()) continue;
    const graph::Alias own{.name = op->name};
    nb::object function = function_object(function_of(*op, own), false);
    set(core, own, function);
    functions[std::string(op->name).c_str()] = function;
    for (const graph::Alias& alias : op->schema.mindspore)
      mindspore[std::string(alias.name).c_str()] = function_object(function_of(*op, alias), false);
    for (const graph::PrimitiveAlias& primitive : op->schema.primitives)
      primitives.append(primitive_of(*op, primitive));
  }
  core.attr("_op_functions") = functions;
  core.attr("_mindspore_functions") = mindspore;
  core.attr("_mindspore_primitives") = primitives;
}

void bind_op_methods(nb::class_<graph::Value>& tensor) {
  for (const Op* op : graph::ops())
    for (const graph::Alias& alias : op->schema.methods)
      set(tensor, alias, function_object(method_of(*op, alias), true));
}

}  // namespace muster::python
