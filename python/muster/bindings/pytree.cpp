#include "python/muster/bindings/pytree.h"

#include <utility>

namespace muster::python {
namespace {

nb::handle as_object(PyTypeObject* type) { return reinterpret_cast<PyObject*>(type); }
PyTypeObject* as_type(nb::handle object) { return reinterpret_cast<PyTypeObject*>(object.ptr()); }

bool has_attribute(PyTypeObject* type, const char* name) {
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), name) != 0;
}

void raise_if_failed(int result) {
  if (result < 0) throw nb::python_error();
}

nb::object or_raise(PyObject* made) {
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

// ---- What is a container ----

// Whether the class and all that it derives from are written in Python, so that attributes are all its state.
bool is_written_in_python(PyTypeObject* type) {
  static const destructor of_python = [] {
    const nb::object made = as_object(&PyType_Type)("Made", nb::make_tuple(), nb::dict());
    return as_type(made)->tp_dealloc;
  }();
  for (; type != &PyBaseObject_Type; type = type->tp_base)
    if (type->tp_dealloc != of_python) return false;
  return true;
}

bool is_namespace(PyTypeObject* type) {
  static const PyTypeObject* const simple =
      as_type(nb::object(nb::module_::import_("types").attr("SimpleNamespace")).release());
  return type == simple;
}

bool is_compared_by_value(PyTypeObject* type) {
  return type->tp_hash != PyBaseObject_Type.tp_hash && type->tp_hash != &PyObject_HashNotImplemented;
}

bool is_object(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  if (is_namespace(type)) return true;
  if (PyCallable_Check(object) != 0 || !is_written_in_python(type)) return false;
  if (has_attribute(type, "_member_map_")) return false;  // of an Enum
  return !is_compared_by_value(type) || has_attribute(type, "__dataclass_fields__");
}

// ---- Attributes ----

// What stands in a __slots__: the type's descriptor of it. Null for any other attribute.
PyObject* slot_of(PyTypeObject* type, nb::handle name) {
  PyObject* const found = _PyType_Lookup(type, name.ptr());
  return found != nullptr && Py_IS_TYPE(found, &PyMemberDescr_Type) ? found : nullptr;
}

// The dict of an object; unset where it has none.
nb::object dict_of(nb::handle object) {
  nb::object found = nb::steal(PyObject_GenericGetDict(object.ptr(), nullptr));
  if (!found.is_valid()) PyErr_Clear();
  return found;
}

void add_slot(std::vector<ContainerPart>& parts, nb::handle object, nb::handle name, PyObject* slot) {
  nb::object value = nb::steal(Py_TYPE(slot)->tp_descr_get(slot, object.ptr(), object.type().ptr()));
  if (value.is_valid())
    parts.push_back({ContainerPart::Place::attribute, nb::borrow(name), std::move(value)});
  else
    PyErr_Clear();  // nothing was put there
}

void add_slots(std::vector<ContainerPart>& parts, nb::handle object) {
  for (PyTypeObject* type = Py_TYPE(object.ptr()); type != nullptr; type = type->tp_base) {
    const auto members = nb::borrow<nb::dict>(type->tp_dict);
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 || !members.contains("__slots__")) continue;
    for (const auto [name, member] : members)
      if (Py_IS_TYPE(member.ptr(), &PyMemberDescr_Type)) add_slot(parts, object, name, member.ptr());
  }
}

bool is_defaultdict(nb::handle object) {
  return PyDict_Check(object.ptr()) && has_attribute(Py_TYPE(object.ptr()), "default_factory");
}

void add_attributes(std::vector<ContainerPart>& parts, nb::handle object) {
  if (is_defaultdict(object)) {
    const nb::str name("default_factory");
    add_slot(parts, object, name, slot_of(Py_TYPE(object.ptr()), name));
  }
  add_slots(parts, object);
  const nb::object attributes = dict_of(object);
  if (!attributes.is_valid()) return;
  for (const auto [name, value] : nb::borrow<nb::dict>(attributes))
    parts.push_back({ContainerPart::Place::attribute, nb::borrow(name), nb::borrow(value)});
}

void put_attribute(nb::handle object, const ContainerPart& part) {
  if (PyObject* const slot = slot_of(Py_TYPE(object.ptr()), part.key))
    return raise_if_failed(Py_TYPE(slot)->tp_descr_set(slot, object.ptr(), part.value.ptr()));
  raise_if_failed(PyDict_SetItem(dict_of(object).ptr(), part.key.ptr(), part.value.ptr()));
}

void remove_attribute(nb::handle object, const ContainerPart& part) {
  if (PyObject* const slot = slot_of(Py_TYPE(object.ptr()), part.key))
    return raise_if_failed(Py_TYPE(slot)->tp_descr_set(slot, object.ptr(), nullptr));
  raise_if_failed(PyDict_DelItem(dict_of(object).ptr(), part.key.ptr()));
}

// ---- Putting together ----

nb::object tuple_of_parts(nb::handle type, std::span<const ContainerPart> parts) {
  nb::list items;
  for (const ContainerPart& part : parts)
    if (part.place == ContainerPart::Place::item) items.append(part.value);
  if (as_type(type) == &PyTuple_Type) return nb::tuple(items);
  if (has_attribute(as_type(type), "n_sequence_fields")) return type(items);  // a struct sequence
  nb::object made = or_raise(PyTuple_Type.tp_new(as_type(type), nb::make_tuple(items).ptr(), nullptr));
  for (const ContainerPart& part : parts)
    if (part.place == ContainerPart::Place::attribute) put_attribute(made, part);
  return made;
}

}  // namespace

Container container_of(nb::handle object) {
  PyObject* const pointer = object.ptr();
  if (PyTuple_Check(pointer)) return Container::tuple;
  if (PyList_Check(pointer)) return Container::list;
  if (PyDict_Check(pointer)) return Container::dict;
  if (object.is_none() || PyLong_Check(pointer) || PyFloat_Check(pointer) || PyUnicode_Check(pointer))
    return Container::none;
  return is_object(pointer) ? Container::object : Container::none;
}

std::vector<ContainerPart> parts_of(nb::handle container) {
  std::vector<ContainerPart> parts;
  PyObject* const pointer = container.ptr();
  if (PyDict_Check(pointer)) {
    for (const auto [key, value] : nb::borrow<nb::dict>(container))
      parts.push_back({ContainerPart::Place::item, nb::borrow(key), nb::borrow(value)});
    if (PyDict_CheckExact(pointer)) return parts;
  } else if (PyTuple_Check(pointer) || PyList_Check(pointer)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(pointer); ++i)
      parts.push_back(
          {ContainerPart::Place::item, nb::int_(i), nb::borrow(PySequence_Fast_GET_ITEM(pointer, i))});
    if (PyTuple_CheckExact(pointer) || PyList_CheckExact(pointer)) return parts;
  }
  add_attributes(parts, container);
  return parts;
}

nb::object empty_container(nb::handle type) {
  PyTypeObject* const made = as_type(type);
  const PyTypeObject* maker = &PyBaseObject_Type;
  if (PyType_FastSubclass(made, Py_TPFLAGS_LIST_SUBCLASS)) maker = &PyList_Type;
  if (PyType_FastSubclass(made, Py_TPFLAGS_DICT_SUBCLASS)) maker = &PyDict_Type;
  if (is_namespace(made)) maker = made;
  return or_raise(maker->tp_new(made, nb::tuple().ptr(), nullptr));
}

nb::object container_of_parts(nb::handle type, std::span<const ContainerPart> parts) {
  if (PyType_FastSubclass(as_type(type), Py_TPFLAGS_TUPLE_SUBCLASS)) return tuple_of_parts(type, parts);
  nb::object made = empty_container(type);
  for (const ContainerPart& part : parts) put_part(made, part);
  return made;
}

void put_part(nb::handle container, const ContainerPart& part) {
  PyObject *const pointer = container.ptr(), *const value = part.value.ptr();
  if (part.place == ContainerPart::Place::attribute) return put_attribute(container, part);
  if (PyODict_Check(pointer)) return raise_if_failed(PyODict_SetItem(pointer, part.key.ptr(), value));
  if (PyDict_Check(pointer)) return raise_if_failed(PyDict_SetItem(pointer, part.key.ptr(), value));
  const auto index = nb::cast<Py_ssize_t>(part.key);
  if (index == PyList_GET_SIZE(pointer)) return raise_if_failed(PyList_Append(pointer, value));
  raise_if_failed(PyList_SetItem(pointer, index, nb::borrow(part.value).release().ptr()));
}

void remove_part(nb::handle container, const ContainerPart& part) {
  PyObject* const pointer = container.ptr();
  if (part.place == ContainerPart::Place::attribute) return remove_attribute(container, part);
  if (PyODict_Check(pointer)) return raise_if_failed(PyODict_DelItem(pointer, part.key.ptr()));
  if (PyDict_Check(pointer)) return raise_if_failed(PyDict_DelItem(pointer, part.key.ptr()));
  const Py_ssize_t count = PyList_GET_SIZE(pointer);
  raise_if_failed(PyList_SetSlice(pointer, count - 1, count, nullptr));
}

}  // namespace muster::python
