// Scopes: where and how the code that a thread runs meanwhile is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/graph/nodes.h"

namespace muster::graph {

class Versioned;  // trace.h

// While it lives, nodes that this thread adds to a trace are placed by `placement`; null: nowhere in
// particular. Scopes nest, and the innermost counts.
class PlaceScope {
 public:
  explicit PlaceScope(PlacementPtr placement);
  ~PlaceScope();
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;

 private:
  PlacementPtr outer_;
};

// Of the innermost scope; null outside any.
const PlacementPtr& current_placement();

// While it lives, what ops of this thread trace is not kept for the backward pass, which computes it again
// from what came from outside: the same bits, more time, less memory. Random numbers are the same; what takes
// part in collective calls or writes parameters is kept. Scopes nest, and the outermost counts. No effect in
// eager mode.
class RecomputeScope {
 public:
  RecomputeScope();
  ~RecomputeScope();
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;

 private:
  std::uint32_t outer_;
};

// Of the outermost scope, its own number within a trace; 0 outside any.
std::uint32_t current_recompute();

// While it lives, ops of this thread are those of `cell`, for people who look for where an anomaly arose.
// Scopes nest, and the innermost counts.
class CellScope {
 public:
  explicit CellScope(const Versioned& cell);
  ~CellScope();
  CellScope(const CellScope&) = delete;
  CellScope& operator=(const CellScope&) = delete;

 private:
  const Versioned* outer_;
};

// While it lives, the first placed scope of this thread that an exception leaves. Does not nest.
class FailureWatch {
 public:
  FailureWatch();
  ~FailureWatch();
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

  // Null: nowhere, or where nothing is placed.
  const PlacementPtr& first() const { return first_; }

 private:
  friend class PlaceScope;
  void note(const PlacementPtr& left);

  int exceptions_;  // under way when it began
  bool has_failed_ = false;
  PlacementPtr first_;
};

// While it lives, ops of this thread compute at once and no trace or tape notes them: for numbers that are
// known while a graph is made. Scopes nest.
class AtOnceScope {
 public:
  AtOnceScope();
  ~AtOnceScope();
  AtOnceScope(const AtOnceScope&) = delete;
  AtOnceScope& operator=(const AtOnceScope&) = delete;

 private:
  void* trace_;
  void* tape_;
};

struct Precision {
  enum class Rule {
    given,     // in what they are given
    low,       // in `low`: parameters are cast to it, and it is what it meets float32 in
    listed,    // products (MixedPrecision::low) and relu in `low`, with results in float32; others as given
    automatic  // as their rows say (MixedPrecision)
  };
  Rule rule = Rule::given;
  DType low = DType::bfloat16;
};

// While it lives, ops of this thread compute as `precision` says; only floating tensors change. Scopes nest,
// and the innermost counts. Parameters themselves stay what they are: their gradients come in their own
// dtype.
class PrecisionScope {
 public:
  explicit PrecisionScope(const Precision& precision);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  Precision precision_;
  const Precision* outer_;
};

// While it lives, this thread traces or runs the samples of a batch in equal parts, one after the other. What
// draws random numbers by sample draws for each sample what it would for the whole batch: the n-th such op of
// every part has one stream, and its samples go on where those of the part before end. Does not nest.
class MicroBatchScope {
 public:
  MicroBatchScope();
  ~MicroBatchScope();
  MicroBatchScope(const MicroBatchScope&) = delete;
  MicroBatchScope& operator=(const MicroBatchScope&) = delete;

  // 0 is the first, and has begun already.
  void begin(std::int64_t part);
  std::int64_t part() const { return part_; }

 private:
  friend std::int64_t next_random_stream();

  std::int64_t part_ = 0;
  std::vector<std::int64_t> streams_;
  std::size_t next_ = 0;  // of them
};

// Of the MicroBatchScope that live on this thread; 0 where there are none.
std::int64_t current_micro_batch();

}  // namespace muster::graph
