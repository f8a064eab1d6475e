// Batches that are computed in parts, and the random numbers of their samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::graph {

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
