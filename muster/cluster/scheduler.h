// The scheduler as a pure state machine: events and the time in, actions out. No sockets, no clock, no
// threads; the real loop (scheduler_process.cpp) and the simulator (tests/sim/cluster) drive the same code.
//
// forming -> running -> ended. Every worker leaves done: the job ended well. Any death, any worker that
// leaves failed, too few processes in time, or an interruption: it ended by that failure, the first one,
// which every node is told.
#pragma once

#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "muster/cluster/messages.h"

namespace muster::cluster {

// One connection, numbered by the driver and never used again.
using PeerId = std::uint64_t;

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
};
struct Interrupted {};
// The time `deadline()` has come.
struct Tick {};
}  // namespace scheduler_event
using SchedulerEvent =
    std::variant<scheduler_event::Received, scheduler_event::Closed, scheduler_event::Exited,
                 scheduler_event::Interrupted, scheduler_event::Tick>;

namespace scheduler_action {
struct Send {
  PeerId peer = 0;
  Message message;
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
// Nothing more to do: everyone who could be told knows.
struct End {
  std::optional<Failure> failure = {};
};
}  // namespace scheduler_action
using SchedulerAction = std::variant<scheduler_action::Send, scheduler_action::Close, scheduler_action::Watch,
                                     scheduler_action::Log, scheduler_action::End>;
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
};

class SchedulerMachine {
 public:
  SchedulerMachine(SchedulerConfig config, TimePoint now);

  SchedulerActions step(const SchedulerEvent& event, TimePoint now);
  // When the next Tick is due; later than that at the latest, earlier does no harm.
  TimePoint deadline() const;

  bool ended() const { return phase_ == Phase::ended; }
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  enum class Phase { forming, running, telling, ended };
  struct Peer {
    Member member;
    bool ranked = false;
    bool left = false;  // said Leave
    bool told = false;  // knows that the job has ended, or cannot be told
    bool watched = false;
    bool closed = false;  // its connection
    bool exited = false;  // its process
    TimePoint heard;
    std::uint64_t step = no_step;
    std::optional<TimePoint> doubted_until = {};  // its last words may still arrive
  };
  using PeerMap = std::map<PeerId, Peer>;

  void received(PeerId id, const Message& message);
  void handle(PeerId id, Peer& peer, const message::Leave& leave);
  void handle(const Peer& reporter, const message::PeerGone& gone);
  void closed(PeerId id);
  void exited(Peer& peer);
  void check(TimePoint now);
  void forgive_own_pause();

  void register_node(PeerId id, const Message& message, const message::Register& request);
  std::optional<std::string> reason_to_refuse(const Message& message, const message::Register& request) const;
  void accept(PeerId id, const Member& member);
  void form_if_complete();
  std::vector<Member> rank_members(Role role, std::uint32_t count);
  void report_progress();
  std::string attendance() const;

  void doubt(Peer& peer);
  void declare_dead(Peer& peer, const std::string& how);
  void fail(Failure failure);
  void end_job();
  void end_if_all_told();

  std::string describe(const Peer& peer) const;
  std::uint32_t wanted(Role role) const;
  void send(PeerId id, MessageBody body);
  void refuse(PeerId id, const std::string& reason);
  void log(log::Level level, std::string text);

  SchedulerConfig config_;
  Phase phase_ = Phase::forming;
  PeerMap peers_;              // those that were accepted
  std::vector<PeerId> order_;  // of registration
  std::map<std::pair<Role, std::string>, PeerId> by_name_;
  std::map<Role, std::uint32_t> present_;
  std::map<Role, std::vector<PeerId>> by_rank_;
  std::uint32_t workers_left_ = 0;
  std::shared_ptr<const Roster> roster_;
  std::optional<Failure> failure_;

  TimePoint now_;
  TimePoint start_;
  TimePoint next_check_;     // of everything that is looked at every beat
  TimePoint next_progress_;  // report
  TimePoint told_until_;     // when waiting for those who do not answer ends
  std::optional<TimePoint> next_doubt_;
  SchedulerActions actions_;
};

}  // namespace muster::cluster
