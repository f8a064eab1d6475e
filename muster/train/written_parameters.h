// Private to train: the parameters that the body of a recoverable loop writes.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_set>
#include <vector>

#include "muster/graph/graph.h"

namespace muster::train {

// Watches the bodies of one loop, whose points hold the `saved` parameters: what it writes to any other is
// lost with a process. One at a time in a process.
//
// Threads: main, but for the writes, which come from any.
class WrittenParameters {
 public:
  explicit WrittenParameters(std::span<const graph::ParameterPtr> saved);
  WrittenParameters(const WrittenParameters&) = delete;
  WrittenParameters& operator=(const WrittenParameters&) = delete;
  ~WrittenParameters();

  // A body begins; it is over.
  void watch();
  void rest();

  // Of all bodies so far: whether they wrote a saved one; the others that they wrote and that are still
  // there, each once.
  bool has_saved() const { return has_saved_; }
  std::vector<graph::ParameterPtr> others();

 private:
  static void note(graph::Parameter& written);

  std::unordered_set<const graph::Parameter*> saved_;
  std::atomic<bool> has_saved_ = false;
  std::mutex mutex_;
  std::vector<std::weak_ptr<graph::Parameter>> others_;
};

}  // namespace muster::train
