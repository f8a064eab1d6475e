// Python functions of the ops, made from their rows: in module `_core`, as methods of Tensor, and under the
// names of MindSpore.
#pragma once

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// The functions in `core`, and by name in `core._op_functions`. For package `mindspore`:
// `core._mindspore_functions` by name, and `core._mindspore_primitives`, a list of (name, settings with
// their defaults, function of the inputs and then the settings).
void bind_op_functions(nb::module_& core);
// The methods that the rows name.
void bind_op_methods(nb::class_<graph::Value>& tensor);

}  // namespace muster::python
