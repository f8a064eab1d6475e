// Lines of a tensor along an axis, for ops whose elements depend on those before them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/graph/ops/array.h"

namespace muster::graph {

// The tensor as lines along the axis: element i of a line is `step` behind the one before it.
struct Lines {
  std::int64_t outer = 1;
  std::int64_t size = 0;
  std::int64_t inner = 1;
  bool exclusive = false;
  bool reverse = false;

  // Calls visit(first, step) with the place of the first element of each line in the order of the products.
  template <class Visit>
  void each(Visit visit) const {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t n = 0; n < inner; ++n) {
        const std::int64_t first = o * size * inner + n;
        if (reverse)
          visit(first + (size - 1) * inner, -inner);
        else
          visit(first, inner);
      }
  }
};

// The lines along the attribute `axis` of the first input, which its shape rule has checked.
inline Prepared prepare_lines(const Signature& signature) {
  const Shape& x = signature.inputs[0].shape;
  const std::size_t axis = *axis_of("cumulative", signature.attributes, x);
  return prepared(Lines{.outer = elements_between(x, 0, axis),
                        .size = x[axis],
                        .inner = elements_between(x, axis + 1, x.rank()),
                        .exclusive = signature.attributes.get("exclusive", false),
                        .reverse = signature.attributes.get("reverse", false)});
}

}  // namespace muster::graph
