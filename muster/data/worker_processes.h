// Private: processes that make rows for one pass (ADR 31).
//
// They are forked from this process, and share with it a table of slots: a task is written into a slot of the
// worker whose turn it is, and its result is written over it. Counters say how far each side is; there are no
// locks, so a process that is killed leaves none behind. The memory has no name, and goes with the last
// process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/data/node.h"

namespace muster::data {

struct WorkerTask {
  std::int64_t row = 0;    // as messages name it
  std::uint64_t key = 0;   // of the row: Draw::row
  std::uint64_t seed = 0;  // WorkerHost::seed
  std::vector<Tensor> inputs = {};
};

// What workers do, each in its own process.
struct WorkerJob {
  // Makes the values of one row. The inputs are the worker's own.
  std::function<Result<std::vector<Tensor>>(const WorkerTask& task)> make;
  std::string what;  // for messages, behind "row 17 ": "of the source"
};

// Threads: one, which has to stay until the object is destroyed: the workers die with the thread that forked
// them.
class WorkerProcesses {
 public:
  // All are borrowed. Nothing is forked before the first task.
  WorkerProcesses(const ProcessOptions& options, const WorkerJob& job, const Pass& pass);
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;
  // Workers end behind the row that they are at, and are killed when that takes longer than a second.
  ~WorkerProcesses();

  // Tasks whose results have not been taken.
  std::size_t in_flight() const { return given_ - taken_; }
  // Whether give() may be called: workers are so many rows ahead as the prefetch says, and hold no more than
  // about 128 MiB together, once each has one.
  bool has_room() const;
  Result<> give(const WorkerTask& task);

  // The values of the oldest task, in memory that is written again behind pop(). Waits for them. The error of
  // the worker; or what has become of it.
  Result<std::vector<Tensor>> front();
  void pop();

 private:
  struct Control;
  struct SlotHead;
  struct Worker;
  class Region;

  Result<> start();
  Result<> fork_worker(std::size_t index);
  [[noreturn]] void serve(std::size_t index) const;
  void make_row(Control& control, std::byte* slot) const;

  std::size_t worker_of(std::uint64_t task) const { return task % count_; }
  std::byte* slot_of(std::uint64_t task) const;
  Result<> await(Worker& worker, std::uint32_t needed);
  Result<> check_alive(Worker& worker) const;
  std::string end_of(const Worker& worker, std::optional<int> status) const;
  Result<> check_time(Worker& worker);
  Error error_in(const std::byte* slot, const Worker& worker) const;
  std::string name_of(const Worker& worker) const;
  std::string place_of(const Worker& worker, std::int64_t row) const;
  void end();

  const ProcessOptions& options_;
  const WorkerJob& job_;
  const WorkerHost& host_;
  const std::atomic<bool>* const ended_;
  const Duration warning_;
  const Duration deadline_;
  const std::size_t count_;
  const std::size_t depth_;  // slots of each worker
  const std::size_t slot_bytes_;
  const pid_t parent_;
  std::unique_ptr<Region> region_;
  std::vector<Worker> workers_;
  std::uint64_t given_ = 0;
  std::uint64_t taken_ = 0;
  std::size_t largest_ = 0;  // bytes of a row so far
};

}  // namespace muster::data
