#include "muster/nn/clipping.h"

#include <cmath>
#include <limits>

#include "muster/nn/ops.h"
#include "muster/nn/values.h"

namespace muster::nn {
namespace {

using graph::Value;
using graph::Values;

// Of all values together, a scalar; undefined for none.
Value norm_of(std::span<const Value> values, double type) {
  const bool greatest = std::isinf(type);
  Value total;
  for (const Value& value : values) {
    Value part;
    if (type == 2) {
      part = graph::apply("sum_of_squares", {value});
    } else {
      const Value size = ops::abs(value);
      part = greatest ? ops::reduce_max(size) : ops::reduce_sum(ops::pow(size, number_like(size, type)));
    }
    if (!total.defined())
      total = part;
    else
      total = greatest ? ops::maximum(total, part) : ops::add(total, part);
  }
  if (!total.defined() || greatest) return total;
  return type == 2 ? ops::sqrt(total) : ops::pow(total, number_like(total, 1 / type));
}

Values scaled(std::span<const Value> values, const Value& factor) {
  Values made;
  for (const Value& value : values) {
    const bool other_dtype = factor.dtype() != value.dtype();
    made.push_back(ops::mul(value, other_dtype ? ops::cast(factor, value.dtype()) : factor));
  }
  return made;
}

}  // namespace

Values clip_by_global_norm(std::span<const Value> values, double clip_norm) {
  if (values.empty()) return {};
  const Value norm = norm_of(values, 2);
  const Value limit = number_like(norm, clip_norm);
  return scaled(values, ops::div(limit, ops::maximum(norm, limit)));
}

Values clip_by_norm(std::span<const Value> values, double max_norm, double norm_type) {
  if (values.empty()) return {};
  const Value norm = norm_of(values, norm_type);
  const Value factor = ops::div(number_like(norm, max_norm), ops::add(norm, number_like(norm, 1e-6)));
  return scaled(values, ops::minimum(factor, number_like(factor, 1)));
}

}  // namespace muster::nn
