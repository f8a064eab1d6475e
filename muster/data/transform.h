// Private: a built-in operation, which works on many rows at a time.
#pragma once

#include "muster/data/formula.h"
#include "muster/data/transforms.h"

namespace muster::data {

// The dtype and shape of one row's value. A size of -1 is not known before the rows come.
struct ValueType {
  DType dtype = DType::uint8;
  Shape shape;
  friend bool operator==(const ValueType&, const ValueType&) = default;
};

inline std::size_t value_bytes(const ValueType& type) {
  return static_cast<std::size_t>(type.shape.elements()) * size_bytes(type.dtype);
}

// Where an image keeps its channels.
enum class Channels { last, first };

// How many rows lie side by side, and what their random numbers are drawn from.
struct Rows {
  std::size_t count = 1;
  const std::uint64_t* keys = nullptr;  // Draw::row of each
  std::uint64_t operation = 0;          // Draw::operation

  RandomStream random(std::size_t row) const { return RandomStream(keys ? keys[row] : 0, operation); }
};

class Transform : public Operation {
 public:
  // What one value becomes, or why this operation cannot take it.
  virtual Result<ValueType> infer(const ValueType& input) const = 0;
  // Computes values side by side; `input` is one that infer() accepted, its sizes all known.
  virtual void run(const ValueType& input, const Rows& rows, const std::byte* in, std::byte* out) const = 0;
  // Whether, for an image (H, W, C) or (C, H, W) as `channels` says, an element that comes out is a function
  // of one element that went in and of its channel alone, every element staying in its place or moving with
  // the channels from last to first. `channels` becomes where they are afterwards.
  virtual bool follow(Channels& channels) const = 0;
  // For an operation that follows, whether its element of `channel` is what the formula gives from then on:
  // it puts its own steps there. Where one of a chain cannot, the chain looks up.
  virtual bool join(Formula&, std::int64_t) const { return false; }
  // Whether run_planes() is provided for `input`: one row, (H, W, C), its output as (C, H, W).
  virtual bool has_planes(const ValueType&) const { return false; }
  virtual void run_planes(const ValueType&, const Rows&, const std::byte*, std::byte*) const {}
  // Whether the type of what comes out is in the bytes that come in (a JPEG file). Then infer() gives sizes
  // of -1, run() is never called, and apply_value() does the work.
  virtual bool by_value() const { return false; }
  virtual Result<Tensor> apply_value(const Tensor& value) const;

  Result<std::vector<Tensor>> apply(std::span<const Tensor> values, Draw draw) const final;
};

using TransformPtr = std::shared_ptr<const Transform>;

}  // namespace muster::data
