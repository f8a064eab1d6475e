// Arguments of an op's Python functions, read as the schema of the op says.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/graph/graph.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// One Python function of an op: which of the op's arguments stands at each place.
struct OpFunction {
  const graph::Op* op = nullptr;
  std::string_view name;  // the function's own
  std::vector<graph::FunctionParameter> parameters;
};

// What the function gives for one object at each place, null where none was given. Raises TypeError or
// ValueError naming the op, the argument, what was given and what is allowed.
nb::object call_op_function(const OpFunction& function, std::span<const nb::handle> given);

bool has_default(const graph::FunctionParameter& parameter);
nb::object default_of(const graph::FunctionParameter& parameter);
// "Tensor | bool | int | float", "int", "int | tuple[int, ...] | None"
std::string python_type(const graph::FunctionParameter& parameter);

}  // namespace muster::python
