// What the files of the Python door share: the parts of module `_core` and how errors leave it.
//
// The bindings hold no logic: they turn Python arguments into values of the rooms and Results into
// exceptions. Every function here is called with the interpreter lock held unless it says otherwise.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "muster/base/base.h"

namespace muster::python {

namespace nb = nanobind;

// Each adds its names to module `_core`; called once, in the order of declaration.
void bind_errors(nb::module_& core);
void bind_dtype(nb::module_& core);
void bind_tensor(nb::module_& core);

// Raises `error` as the Python exception of its code.
[[noreturn]] void raise(const Error& error);

// The value of `result`, or its error as an exception.
template <class T>
T unwrap(Result<T> result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace muster::python
