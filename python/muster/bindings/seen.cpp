#include "python/muster/bindings/seen.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <tuple>
#include <utility>

#include "muster/nn/nn.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/row_arguments.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using Kind = Seen::Kind;
using Place = Seen::Part::Place;

constexpr Py_ssize_t elements_max = 4096;      // of a container; of more only the number is looked at
constexpr Py_ssize_t bytes_max = 1 << 20;      // of an array; a larger one is known again as an object
constexpr Py_ssize_t all_bytes_max = 4 << 20;  // of all that one look keeps
constexpr std::size_t looks_max = 50'000;      // into objects and containers
constexpr int levels_max = 64;                 // of objects in objects

bool is_value_type(nb::handle object) {
  static constexpr std::array types{&PyLong_Type,  &PyFloat_Type,   &PyBool_Type,  &PyUnicode_Type,
                                    &PyBytes_Type, &PyComplex_Type, &PyRange_Type, &PySlice_Type};
  return object.is_none() || object.ptr() == Py_Ellipsis ||
         std::ranges::any_of(types, [&](auto* type) { return Py_IS_TYPE(object.ptr(), type); });
}

bool equal(nb::handle a, nb::handle b) {
  if (a.ptr() == b.ptr()) return true;
  if (Py_TYPE(a.ptr()) != Py_TYPE(b.ptr())) return false;
  if (PyFloat_CheckExact(a.ptr()))  // -0 is another number than 0, and NaN the same as NaN
    return std::bit_cast<std::uint64_t>(PyFloat_AS_DOUBLE(a.ptr())) ==
           std::bit_cast<std::uint64_t>(PyFloat_AS_DOUBLE(b.ptr()));
  return a.equal(b);
}

bool is_sequence(nb::handle object) {
  return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()) ||
         std::string_view(Py_TYPE(object.ptr())->tp_name) == "collections.deque";
}

// The memory of an array; invalid for what has none.
class ArrayView {
 public:
  explicit ArrayView(nb::handle object)
      : is_valid_(PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FULL_RO) == 0) {
    if (!is_valid_) PyErr_Clear();
  }
  ArrayView(const ArrayView&) = delete;
  ArrayView& operator=(const ArrayView&) = delete;
  ~ArrayView() {
    if (is_valid_) PyBuffer_Release(&view_);
  }

  // How many it has; more than are kept where it has none.
  Py_ssize_t size() const { return is_valid_ ? view_.len : bytes_max + 1; }
  // In the order of the elements.
  nb::bytes bytes() const {
    nb::object made = nb::steal(PyBytes_FromStringAndSize(nullptr, view_.len));
    if (!made.is_valid() || PyBuffer_ToContiguous(PyBytes_AS_STRING(made.ptr()), &view_, view_.len, 'C') != 0)
      throw nb::python_error();
    return nb::borrow<nb::bytes>(made);
  }
  bool has(const nb::bytes& kept) const {
    if (!is_valid_ || static_cast<std::size_t>(view_.len) != kept.size()) return false;
    if (PyBuffer_IsContiguous(&view_, 'C') == 0) return bytes().equal(kept);
    return std::memcmp(view_.buf, kept.c_str(), kept.size()) == 0;
  }

 private:
  Py_buffer view_{};
  bool is_valid_;
};

// What a class or one above it has by that name, as it stands there; borrowed.
nb::handle class_attribute(PyTypeObject* type, nb::handle name) {
  const nb::handle classes = type->tp_mro;
  for (Py_ssize_t i = 0; classes.is_valid() && i < PyTuple_GET_SIZE(classes.ptr()); ++i) {
    PyObject* const attributes = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(classes.ptr(), i))->tp_dict;
    if (attributes == nullptr) continue;
    if (PyObject* const found = PyDict_GetItemWithError(attributes, name.ptr())) return found;
  }
  return {};
}

// Of a class: what computes, and no value.
bool is_code(nb::handle object) {
  if (Py_IS_TYPE(object.ptr(), &PyMemberDescr_Type)) return false;
  return PyFunction_Check(object.ptr()) || Py_TYPE(object.ptr())->tp_descr_get != nullptr;
}

// Of the standard library, in C or in Python: partial, property, lru_cache.
bool is_wrapper(nb::handle object) {
  const nb::object name = nb::getattr(object.type(), "__module__", nb::none());
  return name.equal(nb::str("functools")) || name.equal(nb::str("builtins"));
}

bool is_function(nb::handle object) { return PyFunction_Check(object.ptr()) || PyMethod_Check(object.ptr()); }

nb::dict attributes_of(nb::handle object) {
  nb::object made = nb::steal(PyObject_GenericGetDict(object.ptr(), nullptr));
  if (made.is_valid() && nb::isinstance<nb::dict>(made)) return nb::steal<nb::dict>(PyDict_Copy(made.ptr()));
  PyErr_Clear();
  return nb::dict();
}

// Without running code of the object: properties are what they are.
nb::object attribute(nb::handle object, nb::handle name) {
  if (PyModule_Check(object.ptr()))
    return nb::borrow(PyDict_GetItemWithError(PyModule_GetDict(object.ptr()), name.ptr()));
  if (PyType_Check(object.ptr()))
    return nb::borrow(class_attribute(reinterpret_cast<PyTypeObject*>(object.ptr()), name));
  if (const nb::object own = nb::steal(PyObject_GenericGetDict(object.ptr(), nullptr)); own.is_valid()) {
    if (PyObject* const found = PyDict_GetItemWithError(own.ptr(), name.ptr())) return nb::borrow(found);
  } else {
    PyErr_Clear();
  }
  const nb::handle found = class_attribute(Py_TYPE(object.ptr()), name);
  if (!found.is_valid() || !Py_IS_TYPE(found.ptr(), &PyMemberDescr_Type)) return nb::borrow(found);
  nb::object slot = nb::steal(PyObject_GetAttr(object.ptr(), name.ptr()));
  if (!slot.is_valid()) PyErr_Clear();
  return slot;
}

nb::object weakly(nb::handle object) {
  if (!PyType_SUPPORTS_WEAKREFS(Py_TYPE(object.ptr()))) return nb::borrow(object);
  nb::object made = nb::steal(PyWeakref_NewRef(object.ptr(), nullptr));
  if (made.is_valid()) return made;
  PyErr_Clear();
  return nb::borrow(object);
}

}  // namespace

nb::object at_place(const Seen::Part& part, nb::handle owner) {
  switch (part.place) {
    case Place::element:
      break;
    case Place::variable:
      return nb::borrow(PyDict_GetItemWithError(PyFunction_GET_GLOBALS(owner.ptr()), part.name.ptr()));
    case Place::enclosed: {
      const nb::handle cells = PyFunction_GET_CLOSURE(owner.ptr());
      return nb::steal(PyCell_Get(PyTuple_GET_ITEM(cells.ptr(), PyLong_AsSsize_t(part.name.ptr()))));
    }
    case Place::defaults:
      return nb::borrow(PyFunction_GET_DEFAULTS(owner.ptr()));
    case Place::keyword_defaults:
      return nb::borrow(PyFunction_GET_KW_DEFAULTS(owner.ptr()));
    case Place::attribute:
      return attribute(owner, part.name);
    case Place::type:
      return nb::borrow(part.seen.object.is_valid() ? referent(part.seen.object) : nb::object());
  }
  return {};
}

namespace {

// How people write the place.
std::string name_of(const Seen::Part& part, nb::handle owner) {
  switch (part.place) {
    case Place::element:
      return part.name.is_valid() ? "[" + shown(part.name) + "]" : "";
    case Place::enclosed: {
      const nb::object code = nb::borrow(owner).attr("__code__");
      return nb::cast<std::string>(code.attr("co_freevars")[part.name]);
    }
    case Place::defaults:
    case Place::keyword_defaults:
      return "a default of its arguments";
    case Place::type:
      return "";
    default:
      return nb::cast<std::string>(nb::str(part.name));
  }
}

bool differs(Difference* difference, nb::handle now, std::string was = {}) {
  if (difference == nullptr) return false;
  if (difference->counts != nullptr && !difference->counts(was, now)) return true;
  difference->was = std::move(was);
  difference->now = nb::borrow(now);
  return false;
}

// Puts a name before the path, unless that is complete.
bool lies_in(Difference* difference, const std::string& name) {
  if (difference == nullptr || difference->is_complete) return false;
  const bool is_joined = name.empty() || difference->path.empty() || difference->path.front() == '[';
  difference->path = name + (is_joined ? "" : ".") + difference->path;
  return false;
}

bool is_same_part(const Seen::Part& part, nb::handle owner, nb::handle now, Difference* difference) {
  if (is_same(part.seen, now, difference)) return true;
  if (difference == nullptr) return false;
  lies_in(difference, name_of(part, owner));
  // A variable goes by its own name, whoever calls the function that reads it.
  const bool is_of_function = PyFunction_Check(owner.ptr());
  difference->is_complete = difference->is_complete || is_of_function;
  return false;
}

bool is_same_sequence(const Seen& seen, nb::handle now, Difference* difference) {
  const nb::object items = nb::steal(PySequence_Fast(now.ptr(), "a sequence"));
  if (!items.is_valid()) throw nb::python_error();
  if (static_cast<std::size_t>(PySequence_Fast_GET_SIZE(items.ptr())) != seen.parts.size())
    return differs(difference, now);
  for (std::size_t i = 0; i < seen.parts.size(); ++i) {
    const nb::handle item = PySequence_Fast_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i));
    if (!is_same(seen.parts[i].seen, item, difference)) return lies_in(difference, fmt::format("[{}]", i));
  }
  return true;
}

bool is_same_mapping(const Seen& seen, nb::handle now, Difference* difference) {
  if (static_cast<std::size_t>(PyDict_Size(now.ptr())) != seen.parts.size()) return differs(difference, now);
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  for (const Seen::Part& part : seen.parts) {
    if (PyDict_Next(now.ptr(), &position, &key, &value) == 0 ||
        (key != part.name.ptr() && !nb::handle(key).equal(part.name)))
      return differs(difference, now);
    const nb::object held = nb::borrow(value);
    if (!is_same_part(part, now, held, difference)) return false;
  }
  return true;
}

bool is_same_object(const Seen& seen, nb::handle now, Difference* difference) {
  if (referent(seen.object).ptr() != now.ptr()) return differs(difference, now);
  for (const Seen::Part& part : seen.parts)
    if (!is_same_part(part, now, at_place(part, now), difference)) return false;
  return true;
}

Py_ssize_t size_of(nb::handle object) {
  const Py_ssize_t size = PyObject_Size(object.ptr());
  if (size < 0) throw nb::python_error();
  return size;
}

}  // namespace

nb::object referent(const nb::object& kept) {
  if (!PyWeakref_CheckRef(kept.ptr())) return kept;
  PyObject* const object = PyWeakref_GET_OBJECT(kept.ptr());
  return object == Py_None ? nb::object() : nb::borrow(object);
}

bool is_same(const Seen& seen, nb::handle now, Difference* difference) {
  if (!now.is_valid()) return differs(difference, now);
  if (seen.type.is_valid() && now.type().ptr() != seen.type.ptr())
    return differs(difference, now, seen.kind == Kind::value ? shown(seen.object) : "");
  switch (seen.kind) {
    case Kind::value:
      return equal(seen.object, now) || differs(difference, now, shown(seen.object));
    case Kind::object:
      return is_same_object(seen, now, difference);
    case Kind::method:
      return is_same(seen.parts[0].seen, PyMethod_GET_FUNCTION(now.ptr()), difference) &&
             is_same(seen.parts[1].seen, PyMethod_GET_SELF(now.ptr()), difference);
    case Kind::sequence:
      return is_same_sequence(seen, now, difference);
    case Kind::mapping:
      return is_same_mapping(seen, now, difference);
    case Kind::set:
      return now.equal(seen.object) || differs(difference, now, shown(seen.object));
    case Kind::bytes: {
      const ArrayView view(now);
      const nb::bytes kept = nb::borrow<nb::bytes>(seen.object);
      if (view.has(kept)) return true;
      const bool is_as_large = view.size() == static_cast<Py_ssize_t>(kept.size());
      return differs(difference, now, is_as_large ? "an array" : "");
    }
    case Kind::tensor:
      return (is_value(now) && nb::cast<const graph::Value&>(now).identity() == seen.tensor.identity()) ||
             differs(difference, now);
    case Kind::size:
      return size_of(now) == PyLong_AsSsize_t(seen.object.ptr()) || differs(difference, now);
  }
  return true;
}

namespace {

const Seen::Part* find_part(const Seen& seen, const Seen::Part& wanted) {
  const auto found = std::ranges::find_if(seen.parts, [&](const Seen::Part& part) {
    if (part.place != wanted.place || part.seen.kind != wanted.seen.kind) return false;
    return part.place == Place::type ? part.seen.object.is(wanted.seen.object) : part.name.equal(wanted.name);
  });
  return found == seen.parts.end() ? nullptr : &*found;
}

}  // namespace

void drop_changed(Seen& after, const Seen& before, nb::handle now) {
  if (after.kind != Kind::object) return;
  std::erase_if(after.parts, [&](Seen::Part& part) {
    const Seen::Part* const known = find_part(before, part);
    if (known == nullptr) return false;
    const nb::object there = at_place(part, now);
    if (part.seen.kind != Kind::object) return !is_same(known->seen, there);
    drop_changed(part.seen, known->seen, there);
    return !part.seen.object.is(known->seen.object);
  });
}

bool Look::enters(nb::handle object) {
  if (++looks_ >= looks_max || depth_ >= levels_max || !entered_.insert(object.ptr()).second) return false;
  newly_entered_.push_back(object.ptr());
  return true;
}

Seen Look::complete(const std::function<Seen()>& look) {
  const auto begin = std::pair(looks_, kept_bytes_);
  for (;;) {
    std::tie(looks_, kept_bytes_) = begin;
    const std::size_t known = nb::len(attributes_);
    newly_entered_.clear();
    Seen seen = look();
    if (nb::len(attributes_) == known) return seen;
    for (PyObject* const object : newly_entered_) entered_.erase(object);  // a late name may lead further
  }
}

Seen Look::at_callable(nb::handle callable) {
  return complete([&] { return at(callable); });
}

Seen Look::at_cell(nb::handle cell) {
  attributes_.add(nb::str("construct"));
  attributes_.add(nb::str("bprop"));
  return complete([&] { return at_cell_once(cell); });
}

bool Look::opens(nb::handle container) {
  return ++looks_ < looks_max && depth_ < levels_max && open_.insert(container.ptr()).second;
}

void Look::add(Seen& seen, Place place, nb::handle name, nb::handle value) {
  if (!value.is_valid()) return;
  ++depth_;
  seen.parts.push_back({place, nb::borrow(name), at(value)});
  --depth_;
}

Seen Look::at(nb::handle object) {
  const nb::object type = nb::borrow(object.type());
  if (is_value_type(object))
    return {.kind = Kind::value, .type = type, .object = nb::borrow(object), .parts = {}};
  if (is_sequence(object) || PyAnySet_Check(object.ptr()) || PyDict_Check(object.ptr()))
    return at_container(object);
  if (PyMethod_Check(object.ptr())) {
    Seen seen{.kind = Kind::method, .type = type, .object = {}, .parts = {}};
    add(seen, Place::element, {}, PyMethod_GET_FUNCTION(object.ptr()));
    add(seen, Place::element, {}, PyMethod_GET_SELF(object.ptr()));
    return seen;
  }
  if (PyObject_CheckBuffer(object.ptr()) != 0 && !is_value(object)) return at_bytes(object);
  return at_object(object);
}

Seen Look::at_container(nb::handle object) {
  Seen seen{.kind = Kind::size,
            .type = nb::borrow(object.type()),
            .object = nb::int_(size_of(object)),
            .parts = {}};
  if (size_of(object) > elements_max || !opens(object)) return seen;
  if (PyAnySet_Check(object.ptr())) {
    seen.kind = Kind::set;
    seen.object = nb::steal(PyFrozenSet_New(object.ptr()));
  } else if (PyDict_Check(object.ptr())) {
    seen.kind = Kind::mapping;
    for (const auto [key, value] : nb::steal<nb::dict>(PyDict_Copy(object.ptr())))
      add(seen, Place::element, key, value);
  } else {
    seen.kind = Kind::sequence;
    for (const nb::handle item : nb::tuple(nb::borrow(object))) add(seen, Place::element, {}, item);
  }
  open_.erase(object.ptr());
  return seen;
}

Seen Look::at_bytes(nb::handle object) {
  const ArrayView view(object);
  if (view.size() > std::min(bytes_max, all_bytes_max - kept_bytes_)) return at_object(object);
  kept_bytes_ += view.size();
  Seen seen{.kind = Kind::bytes, .type = nb::borrow(object.type()), .object = view.bytes(), .parts = {}};
  if (is_before_) seen.array = nb::borrow(object);
  return seen;
}

Seen Look::at_object(nb::handle object) {
  Seen seen{.kind = Kind::object, .type = {}, .object = weakly(object), .parts = {}};
  if (is_value(object)) {  // the graph reads parameters by itself
    seen.tensor = nb::cast<const graph::Value&>(object);
    if (!seen.tensor.is_concrete()) seen.tensor = {};
    if (seen.tensor.defined()) seen.kind = Kind::tensor;
    return seen;
  }
  if (nb::isinstance<nn::Cell>(object)) return at_cell_once(object);
  if (!enters(object)) return seen;
  if (PyFunction_Check(object.ptr()))
    add_function(seen, object);
  else if (PyModule_Check(object.ptr()))
    add_module(seen, object);
  else if (PyType_Check(object.ptr()))
    add_class(seen, object);
  else
    add_attributes_of(seen, object);
  return seen;
}

void Look::add_function(Seen& seen, nb::handle function) {
  CodeNames names{.variables = {}, .attributes = attributes_};
  add_names(names, PyFunction_GET_CODE(function.ptr()));
  // What a library's function has in hand of a script are the functions that it wraps.
  PyObject* const globals = PyFunction_GET_GLOBALS(function.ptr());
  const nb::handle module = PyDict_GetItemString(globals, "__name__");
  const bool is_library = module.is_valid() && libraries_.has(module);
  if (const nb::handle cells = PyFunction_GET_CLOSURE(function.ptr()); cells.is_valid()) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cells.ptr()); ++i) {
      const nb::object value = nb::steal(PyCell_Get(PyTuple_GET_ITEM(cells.ptr(), i)));
      if (!is_library || (value.is_valid() && is_function(value)))
        add(seen, Place::enclosed, nb::int_(i), value);
    }
  }
  if (is_library) return;
  for (const nb::handle name : names.variables)
    add(seen, Place::variable, name, PyDict_GetItemWithError(globals, name.ptr()));
  for (const auto [name, value] : attributes_of(function))
    if (attributes_.contains(name)) add(seen, Place::attribute, name, value);
  add(seen, Place::defaults, nb::none(), PyFunction_GET_DEFAULTS(function.ptr()));
  add(seen, Place::keyword_defaults, nb::none(), PyFunction_GET_KW_DEFAULTS(function.ptr()));
}

void Look::add_module(Seen& seen, nb::handle module) {
  const nb::object name = nb::getattr(module, "__name__", nb::none());
  for (const char* of_random : {"random", "numpy.random"})
    if (name.equal(nb::str(of_random))) random_modules_.append(module);
  if (name.equal(nb::str("numpy")) && attributes_.contains("random")) random_modules_.append(module);
  if (libraries_.has(name)) return;
  // A copy: functions of the module add the names that they load.
  for (const nb::handle attribute : nb::tuple(nb::borrow(attributes_)))
    add(seen, Place::attribute, attribute,
        PyDict_GetItemWithError(PyModule_GetDict(module.ptr()), attribute.ptr()));
}

const Look::OfClass& Look::defined_by(nb::handle type) {
  const auto [place, is_new] = classes_.try_emplace(type.ptr());
  OfClass& made = place->second;
  PyObject* const defined = reinterpret_cast<PyTypeObject*>(type.ptr())->tp_dict;
  if (!is_new || defined == nullptr || libraries_.has(nb::getattr(type, "__module__", nb::none())))
    return made;
  made.is_of_script = true;
  for (const auto [name, value] : nb::steal<nb::dict>(PyDict_Copy(defined)))
    (is_code(value) ? made.code : made.values).emplace_back(nb::borrow(name), nb::borrow(value));
  return made;
}

// What a class defines by itself: values that code reads, and functions that it calls by name, or that Python
// calls (__call__, __getitem__). Functions that read nothing else are let be.
void Look::add_class(Seen& seen, nb::handle type) {
  const OfClass& defined = defined_by(type);
  for (const auto& [name, value] : defined.values)
    if (attributes_.contains(name)) add(seen, Place::attribute, name, value);
  for (const auto& [name, value] : defined.code) {
    const auto text = nb::cast<std::string_view>(name);
    const bool is_called = text.starts_with("__") && text != "__init__" && text != "__new__" &&
                           text != "__repr__" && text != "__str__";
    if (!is_called && !attributes_.contains(name)) continue;
    add(seen, Place::attribute, name, value);
    if (seen.parts.back().seen.parts.empty()) seen.parts.pop_back();
  }
}

// Of the class of an object and those above it.
void Look::add_classes_of(Seen& seen, nb::handle object) {
  const nb::handle classes = Py_TYPE(object.ptr())->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(classes.ptr()); ++i) {
    const nb::handle type = PyTuple_GET_ITEM(classes.ptr(), i);
    if (!defined_by(type).is_of_script) continue;
    add(seen, Place::type, nb::none(), type);
    if (seen.parts.back().seen.parts.empty()) seen.parts.pop_back();
  }
}

// As the object has them: one of its own, or of a class below, may hide them. Slots, too.
void Look::add_values_of_classes(Seen& seen, nb::handle object, const nb::dict& own) {
  const nb::handle classes = Py_TYPE(object.ptr())->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(classes.ptr()); ++i)
    for (const auto& [name, value] : defined_by(PyTuple_GET_ITEM(classes.ptr(), i)).values)
      if (attributes_.contains(name) && !own.contains(name))
        add(seen, Place::attribute, name, attribute(object, name));
}

void Look::add_attributes_of(Seen& seen, nb::handle object) {
  const nb::dict own = attributes_of(object);
  for (const auto [name, value] : own)
    if (attributes_.contains(name)) add(seen, Place::attribute, name, value);
  add_values_of_classes(seen, object, own);
  add_classes_of(seen, object);
  // What wraps a function shows it so: partial, property, staticmethod.
  if (!is_wrapper(object)) return;
  for (const char* wrapped : {"func", "args", "keywords", "fget", "__func__", "__wrapped__"}) {
    const nb::str name(wrapped);
    if (!own.contains(name)) add(seen, Place::attribute, name, attribute(object, name));
  }
}

// A cell notes itself what is set on it: values, parameters, cells.
Seen Look::at_cell_once(nb::handle cell) {
  Seen seen{.kind = Kind::object, .type = {}, .object = weakly(cell), .parts = {}};
  if (!defined_by(cell.type()).is_of_script || !enters(cell)) return seen;
  const nb::dict own = attributes_of(cell);
  for (const auto [name, value] : own) {
    if (!attributes_.contains(name) || nb::isinstance<PythonParameter>(value)) continue;
    const bool is_number = PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr());
    if (is_value_type(value) && !(is_number && is_before_)) continue;
    add(seen, Place::attribute, name, value);
    if (nb::isinstance<nn::Cell>(value) && seen.parts.back().seen.parts.empty()) seen.parts.pop_back();
  }
  add_values_of_classes(seen, cell, own);
  add_classes_of(seen, cell);
  return seen;
}

}  // namespace muster::python
