// Opens once; waiting has a deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace muster::graph {

class Gate {
 public:
  explicit Gate(std::chrono::seconds limit) : limit_(limit) {}
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit_, [&] { return is_open_; });
  }

 private:
  std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
};

}  // namespace muster::graph
