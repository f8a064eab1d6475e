#include "muster/graph/precision.h"

#include <algorithm>
#include <utility>

#include "muster/graph/ops/ops.h"

namespace muster::graph {
namespace {

thread_local const Precision* innermost = nullptr;

using Rule = Precision::Rule;

bool has_dtype(const Value& value, DType dtype) { return value.defined() && value.dtype() == dtype; }

// relu rounds nothing that was low before and needs not come back between two products.
bool is_listed(const Op& op) { return op.precision == MixedPrecision::low || &op == &relu_op(); }

// Parameters in `low`, and with one of that dtype among the inputs all others too. What an op writes must
// stay itself, and so do the statistics and parameters that an op takes beside `low`.
std::optional<Prescribed> in_low(const Op& op, std::span<const Value> inputs, DType low) {
  if (op.has_effect() || op.mixes) return std::nullopt;
  const bool any = std::any_of(inputs.begin(), inputs.end(), [low](const Value& input) {
    return has_dtype(input, low) || (input.is_parameter() && has_dtype(input, DType::float32));
  });
  if (!any) return std::nullopt;
  return Prescribed{floating_as(inputs, low)};
}

std::optional<Prescribed> automatically(const Op& op, std::span<const Value> inputs, DType low) {
  if (op.precision == MixedPrecision::low) return Prescribed{floating_as(inputs, low)};
  const auto is_wide = [](const Value& input) { return has_dtype(input, DType::float32); };
  const bool widest =
      op.precision == MixedPrecision::widest && std::any_of(inputs.begin(), inputs.end(), is_wide);
  if (op.precision == MixedPrecision::full || widest) return Prescribed{floating_as(inputs, DType::float32)};
  return std::nullopt;
}

}  // namespace

PrecisionScope::PrecisionScope(const Precision& precision)
    : precision_(precision), outer_(std::exchange(innermost, &precision_)) {}
PrecisionScope::~PrecisionScope() { innermost = outer_; }

std::optional<DType> meeting_dtype(DType a, DType b) {
  if (innermost == nullptr || innermost->rule != Rule::low) return std::nullopt;
  const DType low = innermost->low;
  const auto fits = [low](DType dtype) { return dtype == low || dtype == DType::float32; };
  if ((a != low && b != low) || !fits(a) || !fits(b)) return std::nullopt;
  return low;
}

std::optional<Prescribed> prescribed(const Op& op, std::span<const Value> inputs) {
  if (innermost == nullptr || &op == &cast_op()) return std::nullopt;
  switch (innermost->rule) {
    case Rule::given:
      break;
    case Rule::low:
      return in_low(op, inputs, innermost->low);
    case Rule::listed:
      if (is_listed(op)) return Prescribed{floating_as(inputs, innermost->low), DType::float32};
      break;
    case Rule::automatic:
      return automatically(op, inputs, innermost->low);
  }
  return std::nullopt;
}

Value floating_as(const Value& value, DType dtype) {
  if (!value.defined() || !is_floating(value.dtype()) || value.dtype() == dtype) return value;
  return apply("cast", {value}, {{"dtype", dtype}});
}

Values floating_as(std::span<const Value> values, DType dtype) {
  Values made;
  for (const Value& value : values) made.push_back(floating_as(value, dtype));
  return made;
}

}  // namespace muster::graph
