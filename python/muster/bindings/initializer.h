// How parameters begin, as Python holds it.
#pragma once

#include <optional>
#include <string>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

struct PythonInitializer {
  graph::Initializer fill;
};

// What initializer(init, shape, dtype) gives: enough for a Parameter.
struct InitialValue {
  graph::Initializer initializer;
  graph::TensorType type;
};

// An initializer from Python: its name ("normal"), an Initializer, a number, or a tensor of shape `shape`.
// `what` names the argument in errors.
graph::Initializer initializer_from(nb::handle object, const Shape& shape, const std::string& what);

}  // namespace muster::python
