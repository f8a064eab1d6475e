// What `map` does to the values of a row.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/tensor/tensor.h"

namespace muster::data {

// One transform. Python functions implement this interface too: `apply` of one iterator is only ever called
// on one thread at a time, and never from two threads when the operation is not one of `transforms.h`.
class Operation {
 public:
  virtual ~Operation() = default;
  // As users know it, for messages: "Rescale".
  virtual std::string name() const = 0;
  // New values for the input columns of one row, as many as came in. The inputs may be shared: never write
  // them.
  virtual Result<std::vector<Tensor>> apply(std::span<const Tensor> values) const = 0;
};

using OperationPtr = std::shared_ptr<const Operation>;

}  // namespace muster::data
