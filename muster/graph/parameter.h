// A named tensor that outlives the calls: weights, and the state of optimizers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "muster/graph/type.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {

// Fills a new tensor; `stream` belongs to this parameter alone (seed of the job, hash of the name).
using Initializer = std::function<void(const Tensor& out, const RandomStream& stream)>;

// Its identity is the object's. Storage is made on first use and then keeps its address: setting copies into
// it, optimizers update it in place. Threads: one at a time.
class Parameter {
 public:
  enum class Origin { initialised, set_by_user };

  Parameter(std::string name, TensorType type, Initializer initializer, bool requires_grad = true);
  // A parameter with values from the start.
  Parameter(std::string name, const Tensor& values, bool requires_grad = true);

  const std::string& name() const { return name_; }
  // The name decides the random numbers, so it is final once the storage is made; cells name their parameters
  // by path ("fc.weight") when they are inserted.
  void rename(std::string name);
  const TensorType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }

  bool requires_grad() const { return requires_grad_; }
  void set_requires_grad(bool requires_grad);
  // Grows whenever something changed that a trace may depend on (never by new values).
  std::uint64_t version() const { return version_; }

  Origin origin() const { return origin_; }
  bool materialized() const { return storage_.defined(); }
  // Makes the storage from (seed, name) if there is none yet.
  const Tensor& materialize(std::uint64_t seed);
  // The storage; it must have been made.
  const Tensor& storage() const;
  // Copies `values` in; an error when dtype or shape differ.
  [[nodiscard]] Result<> set(const Tensor& values);

 private:
  std::string name_;
  TensorType type_;
  Initializer initializer_;
  bool requires_grad_;
  std::uint64_t version_;
  Origin origin_ = Origin::initialised;
  Tensor storage_;
};

using ParameterPtr = std::shared_ptr<Parameter>;

// Process-wide stamps for versions: each is greater than all before. Any thread.
std::uint64_t next_version();

}  // namespace muster::graph
