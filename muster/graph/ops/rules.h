// Private to graph: parts of gradient and shape rules.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "muster/graph/op.h"

namespace muster::graph {

// The shape that `a` and `b` broadcast to, as numpy does; nothing when they do not fit together.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);
// `axis` counted from the front, or an error that names the op.
Result<std::size_t> axis_at(std::string_view op, const Shape& shape, std::int64_t axis);

// A scalar of the dtype of `like`.
Value scalar_like(const Value& like, double value);
// Of the type of `like`.
Value filled_like(const Value& like, double value);
Value plus(const Value& a, const Value& b);
Value minus(const Value& a, const Value& b);
Value times(const Value& a, const Value& b);
Value times(const Value& a, double b);
Value over(const Value& a, const Value& b);
Value negated(const Value& x);
// x where condition, else 0.
Value where(const Value& condition, const Value& x);
// A bool tensor as numbers of the dtype of `like`.
Value as_numbers(const Value& condition, const Value& like);
// What `rule` makes of a gradient, for rules that need floating numbers: those of whole numbers are float64
// in it.
Value in_floats(const Value& gradient, const std::function<Value(const Value&)>& rule);

}  // namespace muster::graph
