#include "python/muster/bindings/tensor_index.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/process.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Value;
using nn::Index;

// Numbers beyond the range of indices are as good as its ends.
std::optional<std::int64_t> bound(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  const Py_ssize_t value = PyNumber_AsSsize_t(object.ptr(), nullptr);
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

nn::Slice slice_from(nb::handle object) {
  return {.begin = bound(object.attr("start")),
          .end = bound(object.attr("stop")),
          .step = bound(object.attr("step")).value_or(1)};
}

std::int64_t number_from(nb::handle object) {
  const Py_ssize_t value = PyNumber_AsSsize_t(object.ptr(), PyExc_IndexError);
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

// A list, a tuple within an index, or an array; an empty list picks nothing.
Index tensor_from(nb::handle object) {
  if (nb::isinstance<nb::list>(object) && nb::len(object) == 0) return Value(Tensor(DType::int64, {0}));
  const Value value = value_from(object);
  const bool is_number = value.is_concrete() && value.shape().rank() == 0 && PyIndex_Check(object.ptr());
  if (is_number) return number_from(object);
  return value;
}

// True takes all, in a new axis.
Index all_or_nothing(nb::handle object) {
  if (object.ptr() == Py_True) return nn::NewAxis{};
  throw nb::index_error("False picks nothing of a tensor: only an assignment takes it, and changes nothing");
}

Index index_from(nb::handle object) {
  if (object.is_none()) return nn::NewAxis{};
  if (object.ptr() == Py_Ellipsis) return nn::Ellipsis{};
  if (PySlice_Check(object.ptr())) return slice_from(object);
  if (PyBool_Check(object.ptr())) return all_or_nothing(object);
  if (PyLong_Check(object.ptr())) return number_from(object);
  if (is_value(object)) return nb::cast<const Value&>(object);
  if (nb::isinstance<nb::list>(object) || PyObject_CheckBuffer(object.ptr())) return tensor_from(object);
  // x[0, (1, 2)], as MindSpore and numpy have it: a tuple in an index is what a list of its entries is.
  if (nb::isinstance<nb::tuple>(object)) return tensor_from(nb::steal(PySequence_List(object.ptr())));
  if (PyIndex_Check(object.ptr())) return number_from(object);
  throw nb::index_error(
      ("a tensor is indexed by whole numbers, slices, None, ..., and tensors of integers or "
       "bool, not by " +
       class_name(object))
          .c_str());
}

bool picks_axes(nb::handle entry) {
  return entry.is_none() || entry.ptr() == Py_Ellipsis || PySlice_Check(entry.ptr()) || is_value(entry) ||
         nb::isinstance<nb::list>(entry) || nb::isinstance<nb::tuple>(entry);
}

// x[[[0, 1], [1, 2]]]: with MindSpore's names a list that holds more than numbers is what a tuple of its
// entries is; numpy, and so the library by its own names, makes one array of it.
nb::object index_of_axes(nb::handle object) {
  if (!mindspore_words().is_valid() || !nb::isinstance<nb::list>(object)) return nb::borrow(object);
  for (const nb::handle entry : nb::iter(object))
    if (picks_axes(entry)) return nb::steal(PySequence_Tuple(object.ptr()));
  return nb::borrow(object);
}

bool picks_nothing(nb::handle object) {
  if (!nb::isinstance<nb::tuple>(object)) return object.ptr() == Py_False;
  for (const nb::handle entry : nb::iter(object))
    if (entry.ptr() == Py_False) return true;
  return false;
}

std::vector<Index> indices_from(nb::handle object) {
  std::vector<Index> indices;
  if (nb::isinstance<nb::tuple>(object))
    for (const nb::handle entry : nb::iter(object)) indices.push_back(index_from(entry));
  else
    indices.push_back(index_from(object));
  return indices;
}

}  // namespace

Value indexed(const Value& tensor, nb::handle given) {
  const nb::object index = index_of_axes(given);
  const bool noted = graph::is_tracing() || graph::is_taping();
  const Value x = tensor.is_parameter() && !noted ? Value(elements_of(tensor)) : tensor;
  const std::vector<Index> indices = indices_from(index);
  try {
    return nn::index(x, indices);
  } catch (const Exception& exception) {
    // IndexError is also what ends `for row in tensor`.
    if (exception.error().code != Code::invalid_argument) throw;
    throw nb::index_error(exception.what());
  }
}

nb::object part_of(nb::handle tensor, nb::handle index) {
  nb::object part = tensor_result(indexed(nb::cast<const Value&>(tensor), index));
  auto& [last, before] = process().last_parts;
  before = std::move(last);
  last = {.part = nb::weakref(part), .whole = nb::weakref(tensor), .index = nb::borrow(index)};
  return part;
}

namespace {

// Nobody holds x[i] in x[i][j] = v: what it was given belongs to x.
void write_back(nb::handle part) {
  for (const Part& known : process().last_parts) {
    if (!known.part.is_valid() || !known.part().is(part)) continue;
    const nb::object whole = known.whole();
    if (!whole.is_none()) return set_indexed(whole, known.index, part);
  }
  throw nb::index_error(
      "this assignment would be lost: x[i] is a tensor of its own, so write x[i, j, k] = v instead of "
      "x[i][j][k] = v");
}

}  // namespace

void set_indexed(nb::handle self, nb::handle given, nb::handle values) {
  const nb::object index = index_of_axes(given);
  if (picks_nothing(index)) return;
  Value& tensor = nb::cast<Value&>(self);
  const bool is_parameter = tensor.is_parameter();  // a cell holds it, whoever holds this object
  const bool noted = graph::is_tracing() || graph::is_taping();
  const Value x = is_parameter && !noted ? Value(elements_of(tensor)) : tensor;
  const std::vector<Index> indices = indices_from(index);
  try {
    set_value(self, nn::with_elements(x, indices, value_from(values, &x)));
  } catch (const Exception& exception) {
    if (exception.error().code != Code::invalid_argument) throw;
    throw nb::index_error(exception.what());
  }
  if (!is_parameter && Py_REFCNT(self.ptr()) == 1) write_back(self);
}

}  // namespace muster::python
