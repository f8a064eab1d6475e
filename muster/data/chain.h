// Private: built-in operations one after the other, ready to run on values of one type.
#pragma once

#include <memory>
#include <vector>

#include "muster/data/formula.h"
#include "muster/data/look_up.h"
#include "muster/data/transform.h"

namespace muster::data {

// Immutable once compiled: any number of threads may run it, each with a Scratch of its own.
class Chain {
 public:
  // Memory for what lies between the operations.
  struct Scratch {
    std::vector<std::byte> buffers[2];
  };
  // What a run is given besides the values.
  struct Run {
    Rows rows;  // `operation` is the first operation's; those after it count on
    Stores stores = Stores::cached;
  };

  // `input` has known sizes only, and so have all values on the way.
  static Result<Chain> compile(std::vector<TransformPtr> transforms, const ValueType& input);

  const ValueType& input() const { return types_.front(); }
  const ValueType& output() const { return types_.back(); }
  // Computes values side by side.
  void run(const Run& run, const std::byte* in, std::byte* out, Scratch& scratch) const;

 private:
  void build_table();
  void fill_table();
  void find_formulas();
  void prepare(Scratch& scratch) const;
  void run_row(const Run& run, const std::byte* in, std::byte* out, Scratch& scratch) const;
  void run_steps(std::size_t end, const Run& run, const std::byte* in, std::byte* out,
                 Scratch& scratch) const;
  void look_up_rows(std::size_t rows, Stores stores, Channels channels_before, const std::byte* in,
                    std::byte* out) const;

  std::vector<TransformPtr> transforms_;
  std::vector<ValueType> types_;  // before the first transform, and after each
  // The operations from `table_begin_` on, where they take images of bytes: what they make of each byte, by
  // channel. The table is filled by the operations themselves, so looking up gives their bits, whatever they
  // compute. Empty when there are no such operations at the end of the chain.
  std::vector<std::byte> table_;
  // What gives the table's bits, by channel, where that is known and faster; else none.
  std::vector<Formula> formulas_;
  std::size_t table_begin_ = 0;
  Channels channels_after_ = Channels::last;
  std::size_t scratch_bytes_ = 0;  // the largest value on the way
};

// What the transforms make of values of type `input`, whose sizes may be unknown.
Result<ValueType> infer(const std::vector<TransformPtr>& transforms, ValueType input);

}  // namespace muster::data
