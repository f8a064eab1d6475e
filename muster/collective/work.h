// A call that is under way: what asynchronous calls give.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "muster/base/base.h"

namespace muster::collective {

// Any thread. Buffers of the call are borrowed until it is done.
class Work {
 public:
  bool is_done() const;
  // Its end; nothing when `timeout` passes first, which ends nothing.
  std::optional<Result<>> wait(std::optional<Duration> timeout = {}) const;
  // Calls `then` with the end: at once when it has come, else on the thread that brings it, which it must not
  // keep.
  void on_done(std::function<void(const Result<>&)> then);

  // By who makes the call, once.
  void finish(Result<> end);

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Result<>> end_;                                  // guarded by the mutex
  std::vector<std::function<void(const Result<>&)>> followers_;  // likewise
};

}  // namespace muster::collective
