// Second public header of `graph`, for the Python bindings (tools/check_layout.py): functions of the program
// around the graph as ops, and whether code may leave a trace.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "muster/graph/op.h"

namespace muster::graph {

// Reads the inputs and writes the outputs, whose dtypes and shapes are those that the call said.
using HostFunction = std::function<Result<>(std::span<const Tensor> inputs, std::span<const Tensor> outputs)>;

// The number by which `call_host_function` finds it, as long as the process runs.
std::int64_t keep_host_function(HostFunction function);

// What host function `number` makes of the inputs: outputs of these types. With `always` it is called even
// where no output is used. It has no gradient.
Values call_host_function(std::int64_t number, std::span<const Value> inputs,
                          std::span<const TensorType> types, bool always);

// Whether code of this thread is traced for a function that may run op by op instead (note_untraceable), as
// Python code does that asks for the text of a tensor.
bool may_fall_back();

}  // namespace muster::graph
