// class Base(nn.Cell, abc.ABC): its metaclass has to derive from those of both, so ABCMeta becomes a base of
// nanobind's. And class Tracker(type(nn.Cell)): nanobind knows its classes by their metaclass itself, so such
// a one makes a class, which then gets nanobind's own (_subclasses.py).
#include <nanobind/stl/string.h>

#include <string>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {
namespace {

void set(PyTypeObject* type, const char* name, nb::handle value) {
  if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), name, value.ptr()) != 0)
    throw nb::python_error();
}

}  // namespace

void allow_abstract_classes() {
  PyTypeObject* const metaclass = Py_TYPE(nb::type<nn::Cell>().ptr());
  const nb::object abc_meta = nb::module_::import_("abc").attr("ABCMeta");
  const nb::handle plain = reinterpret_cast<PyObject*>(&PyType_Type);
  metaclass->tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE;
  set(metaclass, "__bases__", nb::make_tuple(abc_meta));
  // Classes that are not abstract have nothing of ABCMeta's, nor does isinstance() become slower.
  set(metaclass, "__instancecheck__", plain.attr("__instancecheck__"));
  set(metaclass, "__subclasscheck__", plain.attr("__subclasscheck__"));
  metaclass->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_BASETYPE;
  PyType_Modified(metaclass);
}

void bind_abstract_classes(nb::module_& core) {
  core.def("_leave_metaclass", [](nb::handle kind) {
    PyTypeObject* const before = Py_TYPE(kind.ptr());
    Py_SET_TYPE(kind.ptr(),
                reinterpret_cast<PyTypeObject*>(nb::handle(nb::type<nn::Cell>().type()).inc_ref().ptr()));
    PyType_Modified(reinterpret_cast<PyTypeObject*>(kind.ptr()));
    Py_DECREF(before);
  });
}

void refuse_abstract(nb::handle self) {
  const nb::handle type = self.type();
  if ((reinterpret_cast<PyTypeObject*>(type.ptr())->tp_flags & Py_TPFLAGS_IS_ABSTRACT) == 0) return;
  const nb::object names = nb::module_::import_("builtins").attr("sorted")(type.attr("__abstractmethods__"));
  const nb::object text = nb::str(", ").attr("join")(names);
  throw nb::type_error(("Can't instantiate abstract class " + class_name(self) + " with abstract methods " +
                        nb::cast<std::string>(text))
                           .c_str());
}

}  // namespace muster::python
