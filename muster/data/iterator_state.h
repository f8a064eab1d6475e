// Private: parts of an Iterator.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "muster/data/iterator.h"
#include "muster/data/node.h"
#include "muster/data/workers.h"

namespace muster::data {

class Iterator::State {
 public:
  State(NodePtr node, IterateOptions options);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  Result<std::optional<Item>> next();
  // Items made ahead and not yet taken. When there are as many as may be, the thread sleeps.
  std::size_t ready();
  // False in a forked child: the thread is not there, and what it held at the fork stays as it was.
  bool in_own_process() const;

 private:
  // The next item, on the thread it is called on: the caller's until there is a thread, then only the
  // thread's.
  bool has_thread() const { return thread_.joinable(); }
  Result<std::optional<Item>> make();
  Result<std::optional<Item>> make_next();
  Result<std::optional<Item>> make_measured();
  Result<std::optional<Item>> take();
  void make_ahead();
  void fill_queue();

  const pid_t process_;
  const NodePtr node_;  // outlives the stream
  const std::function<Result<>()> while_waiting_;
  const Clock& clock_;
  const std::shared_ptr<ItemTimes> times_;
  Workers workers_;                 // outlive the stream, too
  std::atomic<bool> stop_ = false;  // set with the lock held
  std::unique_ptr<Stream> stream_;
  std::size_t to_skip_;
  // What ended the pass: the end, or an error. Every later call gets it again.
  std::optional<Result<std::optional<Item>>> last_;
  int measured_ = 0;
  Duration cheapest_ = Duration::max();

  std::mutex mutex_;  // guards what follows
  std::size_t ahead_max_;
  std::condition_variable taken_;
  std::condition_variable made_;
  std::deque<Result<std::optional<Item>>> ready_;
  std::thread thread_;
};

}  // namespace muster::data
