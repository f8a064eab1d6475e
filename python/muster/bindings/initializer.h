// Initializers, as Python holds them.
#pragma once

#include <optional>
#include <string>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// class Initializer: the base of all, which differ in how they are made.
struct PythonInitializer {
  nn::InitializerKind kind;
};

// What initializer(init, shape, dtype) gives: a tensor that is filled when its elements are first asked for.
// A Parameter takes the initializer. Until it is given other elements, its value is a parameter without a
// cell.
struct InitialValue : graph::Value {
  InitialValue(graph::Initializer fill, graph::TensorType type, const std::string& name);

  graph::Initializer initializer;
};

// `object`, if it is an InitialValue that nothing has filled yet; else null.
const InitialValue* unfilled(nb::handle object);

// An initializer from Python: its name ("normal"), an Initializer, a number, a tensor of shape `shape`, or
// what initializer() gave for this shape. `what` names the argument in errors. Raises ValueError when it
// cannot fill `shape`.
graph::Initializer initializer_from(nb::handle object, const Shape& shape, const std::string& what);
// Nothing for None.
std::optional<graph::Initializer> optional_initializer_from(nb::handle object, const Shape& shape,
                                                            const std::string& what);

}  // namespace muster::python
