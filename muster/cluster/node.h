// A node (worker or server) as a pure state machine: events and the time in, actions out. No sockets, no
// clock, no threads; the real loop (node_process.cpp) and the simulator (tests/sim/cluster) drive the same
// code.
//
// waiting -> connecting -> registering -> accepted -> running -> leaving -> ended
//    ^____________|_____________|                 a lost connection counts as the scheduler's death from here
//    on
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "muster/cluster/messages.h"

namespace muster::cluster {

namespace node_event {
struct Connected {};
// The attempt failed, or the connection ended after everything that had arrived on it was delivered.
struct Disconnected {
  std::string reason = {};
};
struct Received {
  Message message;
};
// A watched process has ended.
struct Exited {
  Role role = Role::scheduler;
  std::uint32_t rank = 0;
};
struct Leave {
  std::int32_t status = 0;
  std::string reason = {};
};
struct Interrupted {};
// The time `deadline()` has come.
struct Tick {};
}  // namespace node_event
using NodeEvent =
    std::variant<node_event::Connected, node_event::Disconnected, node_event::Received, node_event::Exited,
                 node_event::Leave, node_event::Interrupted, node_event::Tick>;

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
};
struct Formed {
  std::shared_ptr<const Roster> roster = {};
  std::uint32_t rank = 0;
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
                 node_action::Formed, node_action::JobEnded, node_action::Left, node_action::Log>;
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
};

class NodeMachine {
 public:
  NodeMachine(NodeConfig config, TimePoint now);

  // `last_step` is the last step that was done, or no_step.
  NodeActions step(const NodeEvent& event, std::uint64_t last_step, TimePoint now);
  // When the next Tick is due; the first one starts the machine.
  TimePoint deadline() const;

  bool ended() const { return phase_ == Phase::ended; }

 private:
  enum class Phase { waiting, connecting, registering, accepted, running, leaving, ended };

  void connected();
  void disconnected(const std::string& reason);
  void received(const Message& message);
  void accepted(const message::Accept& accept);
  void formed(const message::RosterReady& ready);
  void watch_neighbours(std::uint32_t own_rank);
  void exited(const node_event::Exited& event);
  void leave(const node_event::Leave& event);
  void interrupted();
  void left();
  void check();

  void connect();
  void try_again(const std::string& reason);
  void scheduler_lost(const std::string& how);
  void fail(Failure failure);
  void end(std::optional<Failure> failure);
  bool is_registered() const;
  void drop_connection();
  void send(MessageBody body);
  void log(log::Level level, std::string text);

  NodeConfig config_;
  Phase phase_ = Phase::waiting;
  std::uint64_t job_id_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t last_step_ = no_step;
  std::shared_ptr<const Roster> roster_;
  std::chrono::milliseconds beat_interval_;
  bool has_connection_ = false;
  bool job_ended_ = false;  // and has been said
  bool scheduler_watched_ = false;

  TimePoint now_;
  TimePoint start_;
  TimePoint phase_deadline_;  // next try, answer due, roster due, leave given up
  TimePoint next_beat_;
  TimePoint next_progress_;
  TimePoint heard_;                                        // from the scheduler
  std::optional<TimePoint> scheduler_doubted_until_ = {};  // its last words may still arrive
  NodeActions actions_;
};

}  // namespace muster::cluster
