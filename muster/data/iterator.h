// One pass over a dataset.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "muster/tensor/tensor.h"

namespace muster::data {

// How long items took to make: the processor time of the threads that made them. Any thread.
class ItemTimes {
 public:
  void add(Duration time);
  // The middle one. Nothing of fewer than two: the first one opens files and builds tables.
  std::optional<Duration> middle() const;

 private:
  static constexpr std::size_t kept_max = 64;
  mutable std::mutex mutex_;
  std::vector<Duration> kept_;
};

struct IterateOptions {
  std::uint64_t seed = 0;   // the job's: equal on all ranks
  std::uint64_t epoch = 0;  // which pass this is: each has a shuffle of its own
  // The pass begins after so many items, which an earlier pass has had. Built-in operations do not make
  // them, nor do functions of map() see them.
  std::size_t skip_items = 0;
  // So many rows of the list that all shards share have come already, in whatever shards: the pass gives the
  // others. Only where Dataset::ordered_rows() tells of a longer list.
  std::uint32_t rows_before = 0;
  // Without it a shard of a source ends before the rows that fill it up to the length of the others: each row
  // comes from one shard only.
  bool padding = true;
  // Made ahead at most, but no more than about 128 MiB once there are two; at least 1.
  std::size_t prefetch_items = 8;
  // How long a process of ProcessOptions may take for one row: then a warning, again after as long; then an
  // error. Zero: for ever.
  Duration worker_warning = std::chrono::seconds(60);
  Duration worker_deadline = std::chrono::minutes(10);
  int workers = 0;  // threads that share the work of built-in operations; 0: as many as processors, at most 8
  // Called about every 100 ms while next() waits for an item; an error ends the wait and becomes next()'s.
  // Python looks for signals here.
  std::function<Result<>()> while_waiting = {};
  const Clock& clock = real_clock();      // borrowed; says whether making items is worth a thread
  std::shared_ptr<ItemTimes> times = {};  // gets those of the pass
};

// What 0 workers means: the processors that this process may use, at most 8.
int workers_default();

// The values of one row or batch, in the order of Dataset::columns(). The caller may keep them as long as it
// likes: memory goes back to the iterator's pool when the last user lets go.
using Item = std::vector<Tensor>;

// Yields items in an order that depends on the dataset, the seed and the epoch only.
//
// Items are made ahead on a thread of the iterator's own, which sleeps until half of what it made is taken.
// Large blocks of rows are shared out among workers; the order of the items and their bits are those of one
// worker.
// Pipelines of built-in operations begin on the caller's thread and stay there while making an item is
// cheaper than waking a thread (MNIST batches are). Destroying the iterator stops and joins the thread.
// In a forked child every call fails, and destroying returns at once. Threads: one caller at a time. Python
// must not hold the interpreter lock in next() and the destructor.
class Iterator {
 public:
  class State;

  explicit Iterator(std::unique_ptr<State> state);
  Iterator(Iterator&&) noexcept;
  Iterator& operator=(Iterator&&) noexcept;
  ~Iterator();

  // The next item; nothing at the end of the pass; the error of the pipeline. The last two again at every
  // later call.
  Result<std::optional<Item>> next();

 private:
  std::unique_ptr<State> state_;
};

}  // namespace muster::data
