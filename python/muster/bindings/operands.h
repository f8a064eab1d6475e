// Operands: what functions of tensors take from Python, named so that stubs say it.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// A tensor, a number, or anything that is one when written down: nested lists, an array.
bool is_operand(const PyObject* object);
class Operand : public nb::object {
 public:
  NB_OBJECT_DEFAULT(Operand, nb::object, "Tensor | bool | int | float", is_operand)
};

// An axis, several, or None for all.
bool is_axes(const PyObject* object);
class Axes : public nb::object {
 public:
  NB_OBJECT_DEFAULT(Axes, nb::object, "int | tuple[int, ...] | None", is_axes)
};
std::vector<std::int64_t> axes_from(nb::handle axes);

// Both as values; a number takes the dtype that it has beside the tensor.
std::pair<graph::Value, graph::Value> pair_from(nb::handle a, nb::handle b);

// The documentation of an op's row, for __doc__.
const char* documentation_of(std::string_view op);

}  // namespace muster::python
