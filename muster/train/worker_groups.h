// The group of workers from epoch to epoch. A lost process ends the epoch: workers that wait in a call of
// its communicator fail at once, and the next epoch, with all processes, has a communicator of its own.
//
// Threads: one main thread makes the calls of a communicator, those of a plan that goes on beside it too, and
// moves on to the next epoch, when it is ready to; lost(), formed() and end() may come at any time from
// others.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "muster/cluster/cluster.h"
#include "muster/collective/collective.h"
#include "muster/net/net.h"

namespace muster::train {

class WorkerGroups {
 public:
  struct Options {
    const Clock& clock;  // borrowed
    std::uint32_t rank = 0;
    std::string address;  // where this worker listens
    Duration connect_timeout{};
    Duration call_timeout{};
    std::shared_ptr<const net::Security> security = {};  // of the connections between workers; null: plain
    collective::Transport transport = collective::Transport::tcp;
    bool reads_neighbours = true;
    Duration patience_with_left = std::chrono::seconds(3);
  };
  WorkerGroups(std::shared_ptr<const cluster::Roster> first, collective::Listener listener, Options options);

  // The epoch is over, and so is the one that was about to follow it; where this worker will be reached in
  // the next.
  Result<cluster::DataEndpoint> lost(const Error& reason);
  // The next epoch has all of its processes.
  void formed(std::shared_ptr<const cluster::Roster> roster);
  // A worker has left `epoch` well, in its middle: connecting the workers of it is given up after
  // `patience_with_left`, since that one does not come. To be said again and again.
  void left(std::uint64_t epoch, std::uint32_t rank);
  // No epoch follows. The first reason stays.
  void end(const Error& reason);

  // Before the first call: all calls from then on are recorded there.
  void set_recorder(std::shared_ptr<telemetry::FlightRecorder> recorder) { recorder_ = std::move(recorder); }

  // Of the epoch in use.
  const cluster::Roster& roster() const { return *roster_; }
  // Whether other workers of it share memory with this one.
  bool has_neighbours() const { return has_neighbours_; }
  // Connected at its first use: all workers come to it. An error once the epoch is over.
  Result<Communicator*> communicator();
  // The communicator of the workers that do the same stage; a collective call at its first use.
  Result<Communicator*> stage_group(std::uint32_t stages);
  // Whether that was called in this epoch and went well.
  bool has_stage_group(std::uint32_t stages) const { return stage_groups_.contains(stages); }
  // Calls and messages of all workers that need not be waited for.
  Result<collective::AsyncGroup*> calls();
  // Those of a group of some workers, which these connect at its first use. Of the first epoch alone.
  Result<collective::AsyncGroup*> some_workers(const collective::Members& members);
  void forget(const std::string& group);
  // Whether calls() was asked for in this epoch: then collective calls of all workers go through it.
  bool has_calls() const { return calls_ != nullptr; }
  // This worker makes no more calls.
  void leave(const Error& reason);

  // Adds what the calls of this worker with others are at. Any thread.
  void tell(cluster::Activity& activity) const;

  // Why the epoch in use is over, waited for at most so long.
  std::optional<Error> wait_until_over(Duration limit);
  // Moves on to the next epoch once it has formed. Ends early by `interruption`, asked about every 100 ms, or
  // by end().
  Result<> next(const std::function<Result<>()>& interruption);

 private:
  using CommunicatorPtr = std::unique_ptr<Communicator>;
  using CallsPtr = std::unique_ptr<collective::AsyncGroup>;

  void use(std::shared_ptr<const cluster::Roster> roster);
  struct PeerLeft {
    std::uint64_t epoch = 0;
    std::uint32_t rank = 0;
    TimePoint since;
  };
  Result<> usable() const;
  bool is_left_for_good() const;
  void abort(const Error& reason);
  collective::Options options_of_connections(const net::StopSignal& stop) const;
  Result<CommunicatorPtr> connect();
  Result<Communicator*> connected();
  Result<collective::AsyncGroup*> connected_calls();
  Result<CommunicatorPtr> connect_some(collective::AsyncGroup& all, const collective::Members& members);
  // With the lock.
  std::vector<Communicator*> groups() const;

  const Options options_;
  std::shared_ptr<const cluster::Roster> roster_;  // written by the main thread only, as what follows
  bool has_neighbours_ = false;
  std::shared_ptr<Communicator> communicator_;
  std::map<std::uint32_t, CommunicatorPtr> stage_groups_;      // by number of stages
  CallsPtr calls_;                                             // of all workers
  std::map<std::string, CallsPtr, std::less<>> some_workers_;  // by name

  std::mutex connecting_;  // the first calls of a plan may come from all of its threads; before mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<collective::Listener> listener_;  // of the newest epoch, until it is connected
  std::shared_ptr<const cluster::Roster> next_;
  std::optional<Error> over_;                            // why the epoch in use is
  std::optional<PeerLeft> left_;                         // the first one
  std::optional<Error> ended_;                           // why no other follows
  net::StopSignal* stop_ = nullptr;                      // ends the connecting under way
  std::shared_ptr<telemetry::FlightRecorder> recorder_;  // null: none
};

}  // namespace muster::train
