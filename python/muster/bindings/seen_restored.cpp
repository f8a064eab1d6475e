// Values that code has changed are put back.
#include <algorithm>

#include "python/muster/bindings/seen.h"

namespace muster::python {
namespace {

using Kind = Seen::Kind;
using Place = Seen::Part::Place;

bool is_put_back(const Seen& seen) {
  return seen.kind == Kind::value || (seen.kind == Kind::bytes && seen.array.is_valid());
}

// What was there: a value, or an array, which gets the elements that it had.
nb::object as_it_was(const Seen& seen) {
  if (seen.kind == Kind::value) return seen.object;
  Py_buffer view;
  if (PyObject_GetBuffer(seen.array.ptr(), &view, PyBUF_FULL) != 0) {
    PyErr_Clear();  // read-only: nobody can have written to it
    return seen.array;
  }
  const nb::bytes kept = nb::borrow<nb::bytes>(seen.object);
  if (static_cast<std::size_t>(view.len) == kept.size())
    PyBuffer_FromContiguous(&view, kept.c_str(), view.len, 'C');
  PyBuffer_Release(&view);
  return seen.array;
}

void put_at_place(const Seen::Part& part, nb::handle owner) {
  const nb::object value = as_it_was(part.seen);
  int failed = 0;
  switch (part.place) {
    case Place::variable:
      failed = PyDict_SetItem(PyFunction_GET_GLOBALS(owner.ptr()), part.name.ptr(), value.ptr());
      break;
    case Place::enclosed:
      failed =
          PyCell_Set(PyTuple_GET_ITEM(PyFunction_GET_CLOSURE(owner.ptr()), PyLong_AsSsize_t(part.name.ptr())),
                     value.ptr());
      break;
    case Place::attribute:
      failed = PyObject_GenericSetAttr(owner.ptr(), part.name.ptr(), value.ptr());
      break;
    default:
      break;
  }
  if (failed != 0) PyErr_Clear();  // read-only: it cannot have been changed in this way
}

bool has_values_alone(const Seen& seen) {
  return std::ranges::all_of(seen.parts, [](const Seen::Part& part) { return is_put_back(part.seen); });
}

// What code has added to a list or a dict.
void take_out_new(const Seen& seen, nb::handle now) {
  if (PyList_Check(now.ptr())) {
    const auto count = static_cast<Py_ssize_t>(seen.parts.size());
    if (PyList_SetSlice(now.ptr(), count, PY_SSIZE_T_MAX, nullptr) != 0) throw nb::python_error();
    return;
  }
  for (const auto [key, value] : nb::steal<nb::dict>(PyDict_Copy(now.ptr()))) {
    const auto is_key = [&](const Seen::Part& part) { return part.name.equal(key); };
    if (std::ranges::none_of(seen.parts, is_key) && PyDict_DelItem(now.ptr(), key.ptr()) != 0)
      throw nb::python_error();
  }
}

void restore_container(const Seen& seen, nb::handle now) {
  const bool is_list = PyList_Check(now.ptr());
  if (!is_list && !PyDict_Check(now.ptr())) return;
  if (!has_values_alone(seen)) {
    take_out_new(seen, now);
    for (std::size_t i = 0; i < seen.parts.size(); ++i) {
      const Seen& part = seen.parts[i].seen;
      const nb::object key = is_list ? nb::int_(i) : seen.parts[i].name;
      const nb::object item = nb::steal(PyObject_GetItem(now.ptr(), key.ptr()));
      if (!item.is_valid()) PyErr_Clear();
      if (!is_put_back(part))
        item.is_valid() ? restore(part, item) : void();
      else if (!is_same(part, item))
        nb::borrow(now)[key] = as_it_was(part);
    }
    return;
  }
  nb::object held = nb::borrow(now);
  held.attr("clear")();
  for (const Seen::Part& part : seen.parts) {
    const nb::object value = as_it_was(part.seen);
    is_list ? held.attr("append")(value) : held.attr("__setitem__")(part.name, value);
  }
}

}  // namespace

void restore(const Seen& seen, nb::handle now) {
  if (is_same(seen, now)) return;
  if (seen.kind == Kind::sequence || seen.kind == Kind::mapping) return restore_container(seen, now);
  if (seen.kind == Kind::bytes && seen.array.is_valid()) as_it_was(seen);
  if (seen.kind != Kind::object || referent(seen.object).ptr() != now.ptr()) return;
  for (const Seen::Part& part : seen.parts) {
    if (!is_put_back(part.seen))
      restore(part.seen, at_place(part, now));
    else if (!is_same(part.seen, at_place(part, now)))
      put_at_place(part, now);
  }
}

}  // namespace muster::python
