// Private to graph: numbers that are none. What is found of them, and what is said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "muster/graph/nodes.h"
#include "muster/graph/value.h"

namespace muster::graph {

// Tells the front end of a loss of one element. It costs a look at the element.
// `is_done`: the run that gave it has updated parameters too.
void look_at_loss(const Tensor& loss, bool is_done);

// What the elements of a floating tensor are; of another one nothing is counted.
struct Numbers {
  std::int64_t nans = 0;
  std::int64_t infinities = 0;
  // Of the finite ones.
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
};
// Of `count` elements.
Numbers numbers_of(const std::byte* elements, DType dtype, std::int64_t count);

// A tensor of an op that has run.
struct LookedAt {
  TensorType type;
  Numbers numbers;
  std::string source = {};  // of an input that no op has made: "input 0 of 'train step'"
};

// Whether `made` is an anomaly: NaN, or infinity where all that was given is finite.
bool is_anomaly(const Numbers& made, std::span<const LookedAt> given);

// The error of an op whose output `made`, in row-major order at `elements`, is one.
Error anomaly_of(const Op& op, const OriginPtr& origin, const LookedAt& made, const std::byte* elements,
                 std::span<const LookedAt> given);

}  // namespace muster::graph
