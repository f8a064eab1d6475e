#include "muster/graph/precision.h"

#include <algorithm>
#include <utility>

#include "muster/graph/ops/ops.h"
#include "muster/graph/scopes.h"
#include "muster/graph/thread_state.h"

namespace muster::graph {
namespace {

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
    : precision_(precision), outer_(std::exchange(thread_state().precision, &precision_)) {}
PrecisionScope::~PrecisionScope() { thread_state().precision = outer_; }

std::optional<DType> meeting_dtype(DType a, DType b) {
  const Precision* const wanted = thread_state().precision;
  if (wanted == nullptr || wanted->rule != Rule::low) return std::nullopt;
  const DType low = wanted->low;
  const auto fits = [low](DType dtype) { return dtype == low || dtype == DType::float32; };
  if ((a != low && b != low) || !fits(a) || !fits(b)) return std::nullopt;
  return low;
}

std::optional<Prescribed> prescribed(const Op& op, std::span<const Value> inputs) {
  const Precision* const wanted = thread_state().precision;
  if (wanted == nullptr || &op == &cast_op()) return std::nullopt;
  switch (wanted->rule) {
    case Rule::given:
      break;
    case Rule::low:
      return in_low(op, inputs, wanted->low);
    case Rule::listed:
      if (is_listed(op)) return Prescribed{floating_as(inputs, wanted->low), DType::float32};
      break;
    case Rule::automatic:
      return automatically(op, inputs, wanted->low);
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
