// Arguments of the array functions: shapes, axes, lists of tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "muster/nn/nn.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/value.h"

namespace muster::python {

using Sizes = std::vector<std::int64_t>;

// A tensor of one axis as the list of its elements, which says the same where sizes and axes are asked for;
// anything else as it is.
nb::object listed(nb::handle object);
// One whole number, or a tuple, list or tensor of them.
Sizes sizes_from(nb::handle object);
// None is nothing.
std::optional<Sizes> sizes_or_none(nb::handle object);
// f(2, 3) and f((2, 3)) alike.
Sizes sizes_from_arguments(const nb::args& arguments);
std::optional<DType> dtype_or_none(nb::handle object);
// A tuple or list of tensors, numbers or arrays.
std::vector<graph::Value> values_from(nb::handle tensors);
// A tuple of Tensors; the error if there is one.
nb::typed<nb::tuple, TensorObject, nb::ellipsis> tensor_tuple(const graph::Values& values);

}  // namespace muster::python
