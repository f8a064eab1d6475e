// Operations of `map` on the values of a row.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/tensor/tensor.h"

namespace muster::data {

// What an operation's random numbers for one row are drawn from: RandomStream(draw.row, draw.operation). It
// is made of the seed, the epoch, the sample and the operation's place in the pipeline, and of nothing else:
// no rank, no worker, no order of execution.
struct Draw {
  std::uint64_t row = 0;
  std::uint64_t operation = 0;
};

// One transform. Python functions implement this interface too: `apply` of one iterator is only ever called
// on one thread at a time, and never from two threads when the operation is not one of `transforms.h` or
// `vision.h`.
class Operation {
 public:
  virtual ~Operation() = default;
  // As users know it, for messages: "Rescale".
  virtual std::string name() const = 0;
  // New values for the input columns of one row, as many as map names output columns (without a name for
  // them: as many as came in). The inputs may be shared: never write them.
  virtual Result<std::vector<Tensor>> apply(std::span<const Tensor> values, Draw draw) const = 0;
};

using OperationPtr = std::shared_ptr<const Operation>;

}  // namespace muster::data
