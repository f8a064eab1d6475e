#include "muster/graph/ops/rules.h"

#include <algorithm>

#include "muster/graph/ops/ops.h"

namespace muster::graph {

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  std::vector<std::int64_t> sizes(std::max(a.rank(), b.rank()));
  for (std::size_t back = 1; back <= sizes.size(); ++back) {
    const std::int64_t left = back <= a.rank() ? a[a.rank() - back] : 1;
    const std::int64_t right = back <= b.rank() ? b[b.rank() - back] : 1;
    if (left != right && left != 1 && right != 1) return std::nullopt;
    sizes[sizes.size() - back] = left == 1 ? right : left;
  }
  return Shape(std::move(sizes));
}

Result<std::size_t> axis_at(std::string_view op, const Shape& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const std::int64_t at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) return bad("{}: {} has no axis {}", op, muster::to_string(shape), axis);
  return static_cast<std::size_t>(at);
}

namespace {

Value filled(const Value& like, const std::vector<std::int64_t>& shape, double value) {
  return apply("fill", std::span<const Value>{},
               {{"dtype", like.dtype()}, {"shape", shape}, {"value", value}});
}

}  // namespace

Value scalar_like(const Value& like, double value) {
  return !like.defined() ? like : filled(like, {}, value);
}
Value filled_like(const Value& like, double value) {
  return !like.defined() ? like : filled(like, like.shape().sizes(), value);
}

Value plus(const Value& a, const Value& b) { return apply("add", {a, b}); }
Value minus(const Value& a, const Value& b) { return apply("sub", {a, b}); }
Value times(const Value& a, const Value& b) { return apply("mul", {a, b}); }
Value times(const Value& a, double b) { return times(a, scalar_like(a, b)); }
Value over(const Value& a, const Value& b) { return apply("div", {a, b}); }
Value negated(const Value& x) { return apply("neg", {x}); }
Value where(const Value& condition, const Value& x) {
  return apply("select", {condition, x, scalar_like(x, 0)});
}

Value as_numbers(const Value& condition, const Value& like) {
  return apply("cast", {condition}, {{"dtype", like.dtype()}});
}

Value in_floats(const Value& gradient, const std::function<Value(const Value&)>& rule) {
  if (is_floating(gradient.dtype())) return rule(gradient);
  const Value floats = apply("cast", {gradient}, {{"dtype", DType::float64}});
  return apply("cast", {rule(floats)}, {{"dtype", gradient.dtype()}});
}

}  // namespace muster::graph
