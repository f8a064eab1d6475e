// Private: built-in operations one after the other, ready to run on values of one type.
#pragma once

#include <memory>
#include <vector>

#include "muster/data/transform.h"

namespace muster::data {

using TransformPtr = std::shared_ptr<const Transform>;

// Threads: one at a time.
class Chain {
 public:
  // `input` has known sizes only.
  static Result<Chain> compile(std::vector<TransformPtr> transforms, const ValueType& input);

  const ValueType& input() const { return types_.front(); }
  const ValueType& output() const { return types_.back(); }
  // Computes `rows` values side by side.
  void run(std::size_t rows, const std::byte* in, std::byte* out);

 private:
  void build_table();
  void run_steps(std::size_t rows, const std::byte* in, std::byte* out);

  std::vector<TransformPtr> transforms_;
  std::vector<ValueType> types_;  // before the first transform, and after each
  // Images of bytes: what the chain makes of each byte, by channel. The table is filled by the steps
  // themselves, so looking up gives their bits, whatever they compute. Empty when the chain is none that a
  // table can hold.
  std::vector<std::byte> table_;
  Channels channels_after_ = Channels::last;
  std::vector<std::byte> scratch_[2];
};

// What the transforms make of values of type `input`, whose sizes may be unknown.
Result<ValueType> infer(const std::vector<TransformPtr>& transforms, ValueType input);

}  // namespace muster::data
