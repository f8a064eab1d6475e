// Values: what flows through construct code and between ops; and their types.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/tensor/tensor.h"

namespace muster::graph {

class Parameter;
using ParameterPtr = std::shared_ptr<Parameter>;
class Trace;

// What is known about a tensor before it has elements.
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

// A handle, cheap to copy, that is one of
// - nothing (default): "no value", as the gradient of an input that has none;
// - a concrete Tensor;
// - a Parameter, whose elements are read when an op runs;
// - traced: a place in the graph being made; dtype and shape are known, elements are not.
// What cannot be computed throws an Exception, so that construct code needs no checks.
class Value {
 public:
  Value() = default;
  Value(Tensor tensor);           // NOLINT: implicit by design, tensors are values
  Value(ParameterPtr parameter);  // NOLINT: likewise

  bool defined() const { return state_ != nullptr; }
  bool is_concrete() const;
  bool is_parameter() const;
  bool is_traced() const;

  // Of a concrete, parameter or traced value; of nothing an Exception.
  const TensorType& type() const;
  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }

  // The elements now, for as long as this value lives and a parameter is not written; throws read()'s error,
  // but gives an absent tensor as it is.
  const Tensor& tensor() const;
  // Throws where it is none.
  const ParameterPtr& parameter() const;
  // The elements now, or an error that says why there are none: a traced tensor has no value while its graph
  // is made (so code cannot branch on it), an absent one is on another worker.
  Result<Tensor> read() const;

  // Equal for handles of the same tensor or parameter. For Tape.
  const void* identity() const;

  // For Trace and Function.
  struct Place {
    std::shared_ptr<Trace> trace;
    std::uint32_t id = 0;
  };
  Value(TensorType type, Place place);
  const Place& place() const;

 private:
  struct State;
  explicit Value(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

// Several values; one value is such a list too, so that construct may `return relu(x);`.
class Values : public std::vector<Value> {
 public:
  using std::vector<Value>::vector;
  Values(Value value) : std::vector<Value>{std::move(value)} {}  // NOLINT: implicit by design
};

}  // namespace muster::graph
