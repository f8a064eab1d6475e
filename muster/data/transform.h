// Private: a built-in operation, which works on many rows at a time.
#pragma once

#include "muster/data/transforms.h"

namespace muster::data {

// The dtype and shape of one row's value. A size of -1 is not known before the rows come.
struct ValueType {
  DType dtype = DType::uint8;
  Shape shape;
  friend bool operator==(const ValueType&, const ValueType&) = default;
};

// Where an image keeps its channels.
enum class Channels { last, first };

class Transform : public Operation {
 public:
  // What one value becomes, or why this operation cannot take it.
  virtual Result<ValueType> infer(const ValueType& input) const = 0;
  // Computes `rows` values side by side; `input` is one that infer() accepted, its sizes all known.
  virtual void run(const ValueType& input, std::size_t rows, const std::byte* in, std::byte* out) const = 0;
  // Whether, for an image (H, W, C) or (C, H, W) as `channels` says, an element that comes out is a function
  // of one element that went in and of its channel alone, every element staying in its place or moving with
  // the channels from last to first. `channels` becomes where they are afterwards.
  virtual bool follow(Channels& channels) const = 0;

  Result<std::vector<Tensor>> apply(std::span<const Tensor> values) const final;
};

}  // namespace muster::data
