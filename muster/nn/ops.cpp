#include "muster/nn/ops.h"

namespace muster::nn::ops {

using graph::apply;

Value reshape(const Value& x, const Shape& shape) {
  return apply("reshape", {x}, {{"shape", shape.sizes()}});
}

Value flatten(const Value& x) {
  if (!x.defined()) return apply("reshape", {x});
  if (x.shape().rank() == 0)
    throw Exception(Code::invalid_argument, "flatten: a tensor with at least one axis is needed, not ()");
  std::int64_t rest = 1;
  for (std::size_t axis = 1; axis < x.shape().rank(); ++axis) rest *= x.shape()[axis];
  return reshape(x, {x.shape()[0], rest});
}

}  // namespace muster::nn::ops
