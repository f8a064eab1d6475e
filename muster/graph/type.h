// Type of a tensor: what is known about it before it has elements.
#pragma once

#include <string>

#include "muster/base/base.h"

namespace muster::graph {

struct TensorType {
  DType dtype = DType::float32;
  Shape shape;

  std::size_t size_bytes() const {
    return static_cast<std::size_t>(shape.elements()) * muster::size_bytes(dtype);
  }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// "float32 (32, 10)"
std::string to_string(const TensorType& type);

}  // namespace muster::graph
