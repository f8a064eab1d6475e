// The scheduler as a pure state machine: events and the time in, actions out. No sockets, no clock, no
// threads; the real loop (scheduler_process.cpp) and the simulator (tests/sim/cluster) drive the same code.
//
// forming -> running -> ended. Every worker leaves done: the job ended well. Any death, any worker that
// leaves failed, too few processes in time, or an interruption: it ended by that failure, the first one,
// which every node is told.
//
// A job that recovers goes back and forth between running and recovering: a death ends the epoch, its seat is
// vacant until a process takes it, and with the last one the next epoch begins. What must be known after the
// scheduler's own death is recorded before any node is told (saved_job.h).
//
// What is inside: scheduler/job.h, which all share, and scheduler/phase.h.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "muster/cluster/messages.h"
#include "muster/cluster/saved_job.h"

namespace muster::cluster {

namespace scheduler_event {
struct Received {
  PeerId peer = 0;
  Message message;
};
// The connection is gone, after everything that had arrived on it was delivered.
struct Closed {
  PeerId peer = 0;
};
// The watched process has ended.
struct Exited {
  PeerId peer = 0;
  WaitStatus status = {};
};
// A connection ended by more than a plain close: what came is no Muster, TLS was refused, nothing came in
// time. Closed follows, unless it was turned away before it had a number; of those, many alike may be one
// event.
struct Rejected {
  PeerId peer = 0;
  std::string address = {};
  std::string reason = {};
  std::uint64_t count = 1;
  std::optional<Member> claims = {};  // who it says it is, e.g. with a certificate that is not believed
};
struct Interrupted {};
// The time `deadline()` has come.
struct Tick {};
}  // namespace scheduler_event
using SchedulerEvent =
    std::variant<scheduler_event::Received, scheduler_event::Closed, scheduler_event::Exited,
                 scheduler_event::Rejected, scheduler_event::Interrupted, scheduler_event::Tick>;

namespace scheduler_action {
struct Send {
  PeerId peer = 0;
  Message message;
};
// The same message to many: it is worth encoding once.
struct Share {
  PeerId peer = 0;
  std::shared_ptr<const Message> message = {};  // never null
};
// Flush, then close.
struct Close {
  PeerId peer = 0;
};
struct Watch {
  PeerId peer = 0;
  std::int32_t pid = 0;
};
struct Log {
  log::Level level = log::Level::info;
  std::string text = {};
};
// Must be durable before the actions that follow.
struct Record {
  cluster::Record record;
};
// Nothing more to do: everyone who could be told knows.
struct End {
  std::optional<Failure> failure = {};
};
}  // namespace scheduler_action
using SchedulerAction = std::variant<scheduler_action::Send, scheduler_action::Share, scheduler_action::Close,
                                     scheduler_action::Watch, scheduler_action::Log, scheduler_action::Record,
                                     scheduler_action::End>;
using SchedulerActions = std::vector<SchedulerAction>;

struct SchedulerConfig {
  std::uint32_t worker_num = 1;
  std::uint32_t server_num = 0;
  std::chrono::milliseconds topo_timeout{};
  std::chrono::milliseconds node_timeout{};
  std::uint64_t job_id = 0;  // drawn by the caller, not 0
  std::uint64_t epoch = 1;
  std::uint64_t seed = 0;
  std::int32_t pid = 0;
  std::string process_space = {};
  bool recovers = false;
  bool strict = false;                       // MUSTER_STRICT: processes that differ are an error
  bool restarts_failed = false;              // a process that fails is started again, like one that died
  std::optional<Duration> stuck_limit = {};  // see stuck_watch.h
  std::uint64_t ended_job_id = 0;            // of the job before, which ended well
  std::optional<SavedJob> saved = {};        // an unfinished job to go on with; its job id and seed hold
  std::string address = {};                  // host:port, where nodes look for it; empty: not checked
  bool fresh = false;                        // MUSTER_FRESH: whatever unfinished job is found is given up
  // Where the epochs of a job begin whose log is lost: drawn from the clock, so that neither those of its
  // other lives nor those of a scheduler that still has the log are the same.
  std::uint64_t adopted_epoch = 1;
};

class SchedulerMachine {
 public:
  SchedulerMachine(SchedulerConfig config, TimePoint now);
  ~SchedulerMachine();

  SchedulerActions step(const SchedulerEvent& event, TimePoint now);
  // When the next Tick is due; later than that at the latest, earlier does no harm.
  TimePoint deadline() const;

  bool ended() const;
  // Whether workers train, or have yet to hear how the job has ended.
  bool is_needed() const;
  const std::optional<Failure>& failure() const;

 private:
  class Dispatcher;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace muster::cluster
