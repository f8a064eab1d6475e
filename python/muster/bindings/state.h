// State of callbacks and metrics, as Python's state_dict and load_state_dict have it.
#pragma once

#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// What a state_dict() of Python code gave: a dict of strings to numbers, strings, booleans, None, tensors,
// numpy arrays, and lists and dicts of them. `owner` begins the TypeError that names anything else.
train::State state_from(nb::handle object, const std::string& owner);
// The dict again.
nb::object state_object(const train::State& state);

// What the methods of a Python subclass make of it: `self` is the object, the others are what it defines.
train::State called_state_dict(nb::handle self, const nb::object& state_dict);
Result<> call_load_state_dict(nb::handle self, const nb::object& load_state_dict, const train::State& state);

// The same for the state of those written in C++, whose tensors are in a dict under the name "tensors".
train::State native_state_from(nb::handle object, const std::string& owner);
nb::object native_state_object(const train::State& state);

// state_dict and load_state_dict of `Made`, which are what super().state_dict() calls.
template <class Made, class Class>
void bind_state(Class& made) {
  made.def(
          "state_dict",
          [](Made& self) {
            return nb::borrow<nb::typed<nb::dict, nb::str, nb::any>>(
                native_state_object(unwrap(self.Made::state())));
          },
          "What recovery points keep of it, beside its settings.")
      .def(
          "load_state_dict",
          [](Made& self, nb::handle state) {
            unwrap(self.Made::load_state(native_state_from(state, "load_state_dict")));
          },
          nb::arg("state"), "Goes on from what state_dict() gave.");
}

}  // namespace muster::python
