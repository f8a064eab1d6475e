// Private to graph: collective calls beside the computation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "muster/graph/kernel.h"

namespace muster::graph {

// Runs calls one after another, in the order in which they were given, on a thread of its own. After a call
// that failed the others are passed over, until finish(). Threads: used by one thread at a time.
class CallThread {
 public:
  CallThread();
  // Not while a call is under way.
  ~CallThread();
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  // A forked child has no second thread.
  bool exists() const;
  // `call` and what it points to stay as they are until the call is done.
  void give(void (*run)(const KernelCall&), const KernelCall& call);
  // How many calls were given.
  std::uint64_t given() const { return given_; }
  // Returns when the first `count` calls are done.
  void wait(std::uint64_t count);
  // Returns when all are done.
  void finish();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
  std::uint64_t given_ = 0;
};

}  // namespace muster::graph
