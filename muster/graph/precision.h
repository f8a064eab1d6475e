// Mixed precision: in which dtype ops compute while a piece of a network is traced, or runs op by op.
#pragma once

#include <optional>
#include <span>

#include "muster/graph/op.h"

namespace muster::graph {

struct Precision {
  enum class Rule {
    given,     // in what they are given
    low,       // in `low`: parameters are cast to it, and it is what it meets float32 in
    listed,    // products (MixedPrecision::low) and relu in `low`, with results in float32; others as given
    automatic  // as their rows say (MixedPrecision)
  };
  Rule rule = Rule::given;
  DType low = DType::bfloat16;
};

// While it lives, ops of this thread compute as `precision` says; only floating tensors change. Scopes nest,
// and the innermost counts. Parameters themselves stay what they are: their gradients come in their own
// dtype.
class PrecisionScope {
 public:
  explicit PrecisionScope(const Precision& precision);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  Precision precision_;
  const Precision* outer_;
};

// What two floating dtypes meet in under the scope around; nothing when it has no opinion.
std::optional<DType> meeting_dtype(DType a, DType b);

// For apply_all: the inputs of `op` as the scope around wants them, and the dtype that its results are cast
// to.
struct Prescribed {
  Values inputs;
  std::optional<DType> results = {};
};
// Nothing when they stay as they are.
std::optional<Prescribed> prescribed(const Op& op, std::span<const Value> inputs);

// `value` as `dtype` if it is floating and has another; undefined and failed ones as they are.
Value floating_as(const Value& value, DType dtype);
Values floating_as(std::span<const Value> values, DType dtype);

}  // namespace muster::graph
