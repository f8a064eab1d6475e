// Part of a process in a job that continues after it has lost processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/checkpoint/checkpoint.h"

namespace muster::train {

// The numbers of the calls of a process that all workers make together: train, fit, a recoverable loop. A
// process that returns makes the same calls in the same order, so their numbers say how far it is.
struct CallNumbers {
  std::uint64_t begun = 0;  // of the next call
  std::uint64_t evals = 0;  // evaluations by itself since then
  bool inside = false;      // whether one is under way
  bool lacks_end = false;   // what the call before has made is in later points only, not in memory
  bool resumed = false;     // whether this process has said that it goes on from what another left
  std::uint32_t stage = 0;  // of the network, that this worker has done in the call before
};

// Threads: main.
class Recovery {
 public:
  using Words = std::vector<std::uint64_t>;

  Recovery() = default;
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;
  virtual ~Recovery() = default;

  // Where this worker's points are; it stays there.
  virtual Result<checkpoint::RunStore*> store() = 0;
  // Of one call: saves its points in the background.
  virtual std::unique_ptr<checkpoint::Saver> make_saver(checkpoint::RunStore& store);
  virtual const Clock& clock() const = 0;
  // The workers of this host, this one among them.
  virtual std::uint32_t local_size() const = 0;
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;
  // A collective call: row r of the answer is what rank r gave; all rows are as long as `mine`.
  virtual Result<std::vector<Words>> gather(const Words& mine) = 0;
  // From this worker to another, as Communicator.
  using Pieces = std::span<const std::span<const std::byte>>;
  using WritablePieces = std::span<const std::span<std::byte>>;
  virtual Result<> send(std::uint32_t to, Pieces pieces) = 0;
  virtual Result<> receive(std::uint32_t from, WritablePieces pieces) = 0;
  // Whether a call that failed with `error` may be made again after next_epoch().
  virtual bool lost_epoch(const Error& error) = 0;
  virtual Result<> next_epoch() = 0;
  // As many calls as some worker had finished when the epoch formed.
  virtual std::uint64_t finished_calls() const = 0;
  virtual void report_finished_calls(std::uint64_t calls) = 0;
  // Whose ends this worker's own folder has.
  virtual void report_kept_calls(std::uint64_t calls) { (void)calls; }
  // All workers of the epoch have met, and none is behind.
  virtual void note_rendezvous() {}
  // For the launcher, which may start this process again.
  virtual void mark_step(const checkpoint::StepPlace& place) = 0;

  // Ends of calls that this worker's disk has not taken, oldest first. Later saves try again: until they
  // succeed the calls are not over. So that they do not fill the memory too, only the newest of those with
  // the same tensors has its point: it is all that is left to go on from.
  struct PendingEnd {
    std::optional<checkpoint::Point> point;
    bool is_shared = false;
    checkpoint::CallRecord record;
  };
  std::vector<PendingEnd>& pending_ends() { return pending_ends_; }

  CallNumbers& calls() { return calls_; }
  // A numbered call begins or ends: collectives that are made by hand within it are a part of it.
  void set_inside(bool inside) { calls_.inside = inside; }

 private:
  CallNumbers calls_;
  std::vector<PendingEnd> pending_ends_;
};

// That of the open session; null without one, and where nothing is recovered.
Recovery* recovery_of_session();

// MS_RECOVERY_PATH of what is kept in a store's folder.
std::string recovery_path(const std::string& store_folder);

// "resuming job 0123456789abcdef at step 300; delete PATH of every process to start fresh", for people.
std::string resuming_line(const std::string& store_folder, std::uint64_t step);

}  // namespace muster::train
