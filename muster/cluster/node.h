// A node (worker or server) as a pure state machine: events and the time in, actions out. No sockets, no
// clock, no threads; the real loop (node_process.cpp) and the simulator (tests/sim/cluster) drive the same
// code.
//
// waiting -> connecting -> registering -> accepted -> running -> leaving -> ended
//    ^____________|_____________|                 a lost connection counts as the scheduler's death from here
//    on
//
// In a job that recovers, a lost connection is made again for as long as the process lives; only who needs
// the scheduler (to leave, or for the next epoch) waits for it no longer than MS_NODE_TIMEOUT. A lost epoch
// leads from running to running: AskEndpoint, Endpoint, Rejoin, and the next roster.
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "muster/cluster/forming_table.h"
#include "muster/cluster/messages.h"

namespace muster::cluster {

namespace node_event {
struct Connected {
  std::vector<FoundJob> found = {};  // what lies below MS_RECOVERY_PATH now
};
// The attempt failed, or the connection ended after everything that had arrived on it was delivered.
struct Disconnected {
  std::string reason = {};
  // not_found: nothing listens there; io: there is no way to it; timeout; corrupt: what answers is no Muster;
  // refused: it will not have this process, whenever that tries.
  Code code = Code::peer_lost;
};
struct Received {
  Message message;
};
// A watched process has ended.
struct Exited {
  Role role = Role::scheduler;
  std::uint32_t rank = 0;
  std::uint64_t incarnation = 0;
  WaitStatus status = {};
};
// The answer to AskEndpoint.
struct Endpoint {
  Result<DataEndpoint> endpoint;
};
// The data plane of `epoch` broke here.
struct LinkLost {
  std::uint64_t epoch = 0;
  std::string reason = {};
};
// Another process has this one's place, which no scheduler need remember: it ends as if it were refused.
struct Replaced {
  std::string reason = {};
};
struct Leave {
  std::int32_t status = 0;
  std::string reason = {};
};
// To be compared with those of the other workers.
struct Parameters {
  ParameterReport report;
};
// What TakeStacks asked for.
struct Stacks {
  std::string text = {};
};
struct Interrupted {};
// The time `deadline()` has come.
struct Tick {};
}  // namespace node_event
using NodeEvent =
    std::variant<node_event::Connected, node_event::Disconnected, node_event::Received, node_event::Exited,
                 node_event::Endpoint, node_event::LinkLost, node_event::Replaced, node_event::Leave,
                 node_event::Parameters, node_event::Stacks, node_event::Interrupted, node_event::Tick>;

namespace node_action {
struct Connect {};
// Flush, then close. No Disconnected follows.
struct Disconnect {};
struct Send {
  Message message;
};
struct Watch {
  Role role = Role::scheduler;
  std::uint32_t rank = 0;
  std::int32_t pid = 0;
  std::uint64_t incarnation = 0;
};
// The epoch has ended: where will the data plane of this process be reached in the next one?
struct AskEndpoint {
  Failure reason;
};
struct Formed {
  std::shared_ptr<const Roster> roster = {};
  std::uint32_t rank = 0;
};
// A worker of the epoch has left well: waiting for it is in vain. Said with each heartbeat.
struct PeerLeft {
  std::uint64_t epoch = 0;
  std::uint32_t rank = 0;
};
// The event Stacks follows, where that is asked for.
struct TakeStacks {
  bool is_answered = true;
};
// Said once: the job has ended for this node.
struct JobEnded {
  std::optional<Failure> failure = {};
};
// The scheduler knows that this node leaves, or cannot be told.
struct Left {};
struct Log {
  log::Level level = log::Level::info;
  std::string text = {};
};
}  // namespace node_action
using NodeAction =
    std::variant<node_action::Connect, node_action::Disconnect, node_action::Send, node_action::Watch,
                 node_action::AskEndpoint, node_action::Formed, node_action::PeerLeft,
                 node_action::TakeStacks, node_action::JobEnded, node_action::Left, node_action::Log>;
using NodeActions = std::vector<NodeAction>;

struct NodeConfig {
  Member member;
  std::uint32_t worker_num = 1;
  std::uint32_t server_num = 0;
  std::chrono::milliseconds topo_timeout{};
  std::chrono::milliseconds retry_timeout{};
  std::chrono::milliseconds node_timeout{};
  std::chrono::milliseconds receive_timeout{};
  std::string scheduler = {};  // "127.0.0.1:8118", for messages to people
  bool recovers = false;
  bool strict = false;
  Traits traits = {};
  ProcessSecret secret = {};
  bool fresh = false;
};

// What the process tells of itself with each event.
struct NodeReport {
  std::uint64_t step = no_step;  // the last that was done
  Progress progress = {};
  Activity activity = {};
  std::optional<ProcessStats> stats = {};
  bool is_slower = false;  // its steps take longer than they did: who is it that holds them up?
};

class NodeMachine {
 public:
  NodeMachine(NodeConfig config, TimePoint now);

  NodeActions step(const NodeEvent& event, const NodeReport& report, TimePoint now);
  // When the next Tick is due; the first one starts the machine.
  bool is_registered() const;  // with a scheduler that is there
  TimePoint deadline() const;

  bool ended() const { return phase_ == Phase::ended; }

 private:
  enum class Phase { waiting, connecting, registering, accepted, running, leaving, ended };

  void connected(const node_event::Connected& event);
  void disconnected(const node_event::Disconnected& event);
  void received(const Message& message);
  void accepted(const message::Accept& accept);
  void formed(const message::RosterReady& ready, std::uint64_t epoch);
  void watch_neighbours(std::uint32_t own_rank);
  void exited(const node_event::Exited& event);
  void leave(const node_event::Leave& event);
  void answered(const message::Beat& answer, std::uint64_t epoch);
  void interrupted();
  void left();
  void check();

  // node_recovery.cpp: what only a node of a job that recovers does.
  void epoch_lost(const message::EpochLost& lost, std::uint64_t epoch);
  void endpoint(const node_event::Endpoint& event);
  void link_lost(const node_event::LinkLost& event);
  void look_for_scheduler(const std::string& how);
  void look_again();
  void found_scheduler();
  bool takes(const Message& message) const;
  bool is_behind(const Message& message) const;
  void leave_scheduler_behind(std::uint64_t epoch);
  bool needs_scheduler() const;
  bool give_up_scheduler();
  void rejoin();
  void ask_to_leave();
  void may_not_leave(std::uint32_t rank);

  void connect();
  Duration beat_interval() const;
  message::Beat beat();
  void leave_out_told(std::vector<StepMark>& marks);
  message::Register registration(const std::vector<FoundJob>& found) const;
  bool is_member() const { return config_.recovers && roster_ != nullptr; }
  void say_goodbye(const node_event::Leave& event);
  void wait_for_others(const message::Waiting& waiting);
  void fail_without_scheduler(const std::string& how);
  void try_again(const std::string& reason, Code code = Code::peer_lost);
  void say_why_not_registered();
  void scheduler_lost(const std::string& how);
  void fail(Failure failure);
  void end(std::optional<Failure> failure);
  void drop_connection();
  void send(MessageBody body);
  void log(log::Level level, std::string text);

  NodeConfig config_;
  Phase phase_ = Phase::waiting;
  std::uint64_t job_id_ = 0;
  std::uint64_t epoch_ = 0;
  NodeReport report_;
  std::shared_ptr<const Roster> roster_;
  std::chrono::milliseconds beat_interval_;
  bool has_connection_ = false;
  bool job_ended_ = false;  // and has been said
  bool scheduler_watched_ = false;
  std::int32_t scheduler_pid_ = 0;
  WaitStatus scheduler_status_ = {};

  bool epoch_lost_ = false;                          // and the next has not begun
  bool endpoint_asked_ = false;                      // and the answer has not come
  std::vector<message::PeerGone> gone_ = {};         // in this epoch
  std::vector<std::uint64_t> watched_ = {};          // incarnations
  std::optional<message::LinkLost> link_lost_ = {};  // of this epoch
  std::optional<node_event::Leave> leave_ = {};      // not yet heard by the scheduler
  std::string why_no_scheduler_ = {};
  Code why_no_scheduler_code_ = Code::peer_lost;
  TimePoint no_scheduler_since_;
  std::optional<TimePoint> needed_until_ = {};  // the scheduler, which is not there
  std::optional<TimePoint> leaves_at_ = {};     // other workers may still need this process
  Duration pause_of_asking_ = {};
  std::optional<std::uint32_t> waits_for_ = {};  // as it has been said

  TimePoint now_;
  TimePoint start_;
  TimePoint phase_deadline_;  // next try, answer due, roster due, leave given up
  TimePoint next_beat_;
  TimePoint last_beat_;
  std::uint64_t step_told_ = 0;              // the last step mark that was
  std::optional<TimePoint> beat_sent_ = {};  // that is not answered
  Duration round_trip_ = {};
  Announcements announcements_;                            // before it is registered
  TimePoint next_progress_;                                // of a member without a scheduler
  TimePoint heard_;                                        // from the scheduler
  std::optional<TimePoint> scheduler_doubted_until_ = {};  // its last words may still arrive
  NodeActions actions_;
};

}  // namespace muster::cluster
