// class Base(nn.Cell, abc.ABC): its metaclass has to derive from those of both, so ABCMeta becomes a base of
// nanobind's. And class Tracker(type(nn.Cell)): nanobind knows its classes by their metaclass itself, so such
// a one makes a class, which then gets nanobind's own (_subclasses.py). And class Net(Backbone, Mixin) of two
// cells: nanobind takes one base of its own, so it is shown one while it looks at them. And
// Tensor.__init__ = function: nanobind makes objects by a short cut that would not look at it.
#include <nanobind/stl/string.h>

#include <string>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/process.h"

namespace muster::python {
namespace {

void set(PyTypeObject* type, const char* name, nb::handle value) {
  if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), name, value.ptr()) != 0)
    throw nb::python_error();
}

PyTypeObject* metaclass_of_library() { return Py_TYPE(nb::type<nn::Cell>().ptr()); }

PyTypeObject* as_type(PyObject* object) { return reinterpret_cast<PyTypeObject*>(object); }

// Sets an attribute of the metaclass, which scripts cannot.
void set_in_metaclass(const char* name, nb::handle value) {
  PyTypeObject* const metaclass = metaclass_of_library();
  metaclass->tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE;
  set(metaclass, name, value);
  metaclass->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
  PyType_Modified(metaclass);
}

// An __init__ or __new__ that a script gives a class is called from then on: objects are made the long way.
int set_on_class(PyObject* kind, PyObject* name, PyObject* value) {
  const int failed = process().set_on_class(kind, name, value);
  if (failed == 0 && value != nullptr && PyFunction_Check(value) != 0 &&
      (PyUnicode_CompareWithASCIIString(name, "__init__") == 0 ||
       PyUnicode_CompareWithASCIIString(name, "__new__") == 0))
    as_type(kind)->tp_vectorcall = nullptr;
  return failed;
}

// The library's own class that `kind` derives from; nullptr: it derives from none.
PyTypeObject* library_class(PyTypeObject* kind) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kind->tp_mro); ++i) {
    const nb::handle ancestor = PyTuple_GET_ITEM(kind->tp_mro, i);
    if (PyType_IsSubtype(Py_TYPE(ancestor.ptr()), metaclass_of_library()) != 0 &&
        nb::cast<std::string>(ancestor.attr("__module__")) == "muster._core")
      return as_type(ancestor.ptr());
  }
  return nullptr;
}

// Whether objects of `kind` are what all of its bases want: the class that gives their layout (tp_base)
// derives from the library's classes of all others.
bool one_base_is_all(PyTypeObject* kind) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kind->tp_bases); ++i) {
    PyTypeObject* const wanted = library_class(as_type(PyTuple_GET_ITEM(kind->tp_bases, i)));
    if (wanted != nullptr && PyType_IsSubtype(kind->tp_base, wanted) == 0) return false;
  }
  return true;
}

// Has nanobind see one base of a class.
class ShownBase {
 public:
  explicit ShownBase(PyTypeObject* kind)
      : kind_(kind),
        all_(nb::steal<nb::object>(kind->tp_bases)),
        one_(nb::make_tuple(nb::handle(reinterpret_cast<PyObject*>(kind->tp_base)))) {
    kind_->tp_bases = one_.ptr();
  }
  ~ShownBase() { kind_->tp_bases = all_.release().ptr(); }
  ShownBase(const ShownBase&) = delete;
  ShownBase& operator=(const ShownBase&) = delete;

 private:
  PyTypeObject* kind_;
  nb::object all_;
  nb::object one_;
};

}  // namespace

void allow_abstract_classes() {
  PyTypeObject* const metaclass = metaclass_of_library();
  const nb::object abc_meta = nb::module_::import_("abc").attr("ABCMeta");
  const nb::handle plain = reinterpret_cast<PyObject*>(&PyType_Type);
  metaclass->tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE;
  set(metaclass, "__bases__", nb::make_tuple(abc_meta));
  // Classes that are not abstract have nothing of ABCMeta's, nor does isinstance() become slower.
  set(metaclass, "__instancecheck__", plain.attr("__instancecheck__"));
  set(metaclass, "__subclasscheck__", plain.attr("__subclasscheck__"));
  metaclass->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_BASETYPE;
  process().set_on_class = metaclass->tp_setattro;
  metaclass->tp_setattro = &set_on_class;
  PyType_Modified(metaclass);
}

void bind_abstract_classes(nb::module_& core) {
  core.def("_take_bases", [](nb::handle kind) {
    if (PyTuple_GET_SIZE(as_type(kind.ptr())->tp_bases) < 2 || !one_base_is_all(as_type(kind.ptr()))) return;
    const ShownBase shown(as_type(kind.ptr()));
    const nb::handle metaclass = reinterpret_cast<PyObject*>(metaclass_of_library());
    metaclass.attr("__init__")(kind, "", nb::tuple(), nb::dict());  // which looks at the bases
  });
  core.def("_set_in_metaclass",
           [](const std::string& name, nb::handle value) { set_in_metaclass(name.c_str(), value); });
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
