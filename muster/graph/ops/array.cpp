#include "muster/graph/ops/array.h"

#include "muster/graph/ops/rules.h"

namespace muster::graph {

Sizes sizes_of(const Attributes& attributes, std::string_view name) { return attributes.get(name, Sizes{}); }

Result<std::size_t> axis_of(std::string_view op, const Attributes& attributes, const Shape& shape,
                            std::int64_t otherwise) {
  const std::int64_t axis = attributes.get("axis", otherwise);
  const auto rank = static_cast<std::int64_t>(shape.rank());
  if (axis < -rank || axis >= rank) return bad("{}: {} has no axis {}", op, muster::to_string(shape), axis);
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

std::int64_t elements_between(const Shape& shape, std::size_t first, std::size_t last) {
  std::int64_t count = 1;
  for (std::size_t axis = first; axis < last; ++axis) count *= shape[axis];
  return count;
}

bool broadcasts_to(const Shape& small, const Shape& large) {
  if (small.rank() > large.rank()) return false;
  for (std::size_t back = 1; back <= small.rank(); ++back) {
    const std::int64_t size = small[small.rank() - back];
    if (size != 1 && size != large[large.rank() - back]) return false;
  }
  return true;
}

Value summed_like(const Value& gradient, const Value& like) {
  if (gradient.shape() == like.shape()) return gradient;
  return in_floats(gradient, [&](const Value& g) {
    return apply("sum_to", {g}, {{"shape", like.shape().sizes()}});
  });
}

}  // namespace muster::graph
