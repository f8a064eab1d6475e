// Private to train: the parameters that the steps of a loop write, where the job recovers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/nn/nn.h"

namespace muster::train {

// Watches the steps of one loop, whose points hold the `saved` parameters; `cells` are its networks and
// optimizers. What an optimizer updates from reduced gradients is equal in all workers. What the script
// writes itself (sums of gradients, a scale, averages of weights) may be or not: no other worker goes on with
// this one's until it was seen to be, and for ever where it was seen not to be. What is in no point is lost
// with a process. One at a time watches in a process.
//
// Threads: main, but for the writes, which come from any.
class WrittenParameters {
 public:
  WrittenParameters(std::span<const graph::ParameterPtr> saved, std::span<const nn::CellPtr> cells);
  WrittenParameters(const WrittenParameters&) = delete;
  WrittenParameters& operator=(const WrittenParameters&) = delete;
  ~WrittenParameters();

  // A step begins; it is over.
  void watch();
  void rest();

  // Of all steps so far: whether one wrote a saved parameter; what is not saved, was written since the last
  // question, and is still there.
  bool has_saved() const { return has_saved_; }
  std::vector<graph::ParameterPtr> others();

  // Of what the script writes and points hold, before the step behind so many: for all workers to compare;
  // 0: nothing to compare now.
  std::uint64_t hash(std::int64_t steps);
  void note_compared(bool are_equal);
  // What of it another worker cannot go on with, in words; empty: nothing.
  std::string own() const;

 private:
  static void note(graph::Parameter& written);
  void note_saved(graph::Parameter& written);

  std::unordered_set<const graph::Parameter*> saved_;
  std::unordered_set<const graph::Parameter*> updated_;  // by optimizers, with what those keep
  std::atomic<bool> has_saved_ = false;
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<graph::Parameter>> others_;
  std::vector<graph::ParameterPtr> by_script_;
  bool were_equal_ = false;  // when they were compared last
  bool have_differed_ = false;
};

}  // namespace muster::train
