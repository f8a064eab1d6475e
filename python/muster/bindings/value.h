// Python's class Tensor is graph::Value: one type inside and outside of traced code.
#pragma once

#include <optional>

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// A new Python Tensor. Raises the error of a failed value, so that it names the line that made it; None for
// "no value".
nb::object value_object(graph::Value value);

// One value as itself, several as a tuple, none as None.
nb::object values_object(const graph::Values& values);

// A Python object that is a Tensor, so that stubs say it.
bool is_value_pointer(const PyObject* object);
class TensorObject : public nb::object {
 public:
  NB_OBJECT_DEFAULT(TensorObject, nb::object, "Tensor", is_value_pointer)
};

// A new Python Tensor; raises the error of a failed value.
TensorObject tensor_result(graph::Value value);
// A new Python Tensor that shares the elements.
TensorObject tensor_object(Tensor tensor);

// The elements of a concrete value or a parameter. Raises for a traced value, naming the script's line and
// the way out.
Tensor elements_of(const graph::Value& value);

// A Tensor or Parameter as it is; a number, list or array as a new tensor (a number in the dtype of `like`,
// if given and wide enough).
graph::Value value_from(nb::handle object, const graph::Value* like = nullptr);

// Whether `object` is a Tensor or Parameter.
bool is_value(nb::handle object);

// `value` as an object of the class that a script has derived from Tensor where `like` is of such a one, else
// a Tensor.
nb::object value_object_like(nb::handle like, graph::Value value);
bool is_of_derived_class(nb::handle tensor);

// A copy of what a script has set on a tensor as attributes (`x.tag = 1`); unset where that is nothing, and
// for parameters, which are known again themselves.
nb::object attributes_on(nb::handle tensor);
void put_attributes(nb::handle tensor, nb::handle attributes);

// "folder/script.py:12", the line of Python code that is running now; empty if there is none.
std::string python_place();
// "script.py:12", the innermost line that runs now and is not of this library; empty if there is none. With
// or without the interpreter lock.
std::string line_of_script();
// The same; "?" if there is none.
std::string caller_line();

}  // namespace muster::python
