// Parts of module `_core` that the files of the Python bindings share, and how errors leave it.
//
// The bindings hold no logic: they turn Python arguments into values of the modules and Results into
// exceptions. Every function here is called with the interpreter lock held unless it says otherwise.
#pragma once

#include <nanobind/nanobind.h>

#include <iterator>
#include <string>
#include <utility>

#include "muster/base/base.h"

namespace muster::python {

namespace nb = nanobind;

// Each adds its names to module `_core`; called once, in the order of declaration.
void bind_errors(nb::module_& core);
void bind_dtype(nb::module_& core);
void bind_tensor(nb::module_& core);
void bind_parameter(nb::module_& core);
void bind_initializers(nb::module_& core);
void bind_ops(nb::module_& core);
void bind_array(nb::module_& core);
void bind_image(nb::module_& core);
void bind_ops_math(nb::module_& core);
void bind_control(nb::module_& core);
void bind_functions(nb::module_& core);
void bind_cell(nb::module_& core);
void bind_cell_state(nb::module_& core);
void bind_place(nb::module_& core);
void bind_amp(nb::module_& core);
void bind_activations(nb::module_& core);
void bind_containers(nb::module_& core);
void bind_images(nb::module_& core);
void bind_normalization(nb::module_& core);
void bind_sequences(nb::module_& core);
void bind_losses(nb::module_& core);
void bind_schedules(nb::module_& core);
void bind_optimizers(nb::module_& core);
void bind_training_cells(nb::module_& core);
void bind_clipping(nb::module_& core);
void bind_groups(nb::module_& core);
void bind_transforms(nb::module_& core);
void bind_dataset(nb::module_& core);
void bind_session(nb::module_& core);
void bind_metrics(nb::module_& core);
void bind_callbacks(nb::module_& core);
void bind_checkpoint(nb::module_& core);
void bind_export(nb::module_& core);
void bind_network_nodes(nb::module_& core);
void bind_explanation(nb::module_& core);
void bind_model(nb::module_& core);
void bind_recoverable(nb::module_& core);
void bind_collective(nb::module_& core);
void bind_stacks(nb::module_& core);
void bind_telemetry(nb::module_& core);

// From now on classes of cells, callbacks and all others may have abc.ABC among their bases.
void allow_abstract_classes();
void bind_abstract_classes(nb::module_& core);
// A TypeError, as Python's own, for an object whose class has abstract methods.
void refuse_abstract(nb::handle self);

// The name of the class of `object`, for messages: "ndarray".
std::string class_name(nb::handle object);

// Makes `error` the Python exception that is set, for functions that Python calls without nanobind.
void set_exception(const Error& error);

// Raises `error` as the Python exception of its code.
[[noreturn]] void raise(const Error& error);

// The value of `result`, or its error as an exception.
template <class T>
T unwrap(Result<T> result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// A tuple of make(item) for each item.
template <class Items, class Make>
nb::tuple tuple_of(Items&& items, Make make) {
  auto made = nb::steal<nb::tuple>(PyTuple_New(static_cast<Py_ssize_t>(std::size(items))));
  if (!made.is_valid()) throw nb::python_error();
  Py_ssize_t index = 0;
  for (auto&& item : items) {
    nb::object object = make(item);
    PyTuple_SET_ITEM(made.ptr(), index++, object.release().ptr());
  }
  return made;
}

}  // namespace muster::python
