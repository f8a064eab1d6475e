// A whole cluster in one thread: the real state machines, a clock that jumps from event to event, and a
// network and processes that fail as a seed says. The same seed gives the same run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/cluster/node.h"
#include "muster/cluster/scheduler.h"

namespace muster::cluster::sim {

using namespace std::chrono_literals;

// What goes wrong with messages. Connections of a real network never lose, double or reorder; the machines
// must not hang or disagree even so.
struct Network {
  Duration delay_max = 2ms;
  double drop = 0;       // of one message
  double duplicate = 0;  // of one message
  bool reorders = false;
  double cut = 0;  // chance, at each message, that its connection breaks
};

enum class Way { both, to_scheduler, to_node };
inline constexpr std::uint64_t way_count = 3;

// A node and the scheduler are cut off from each other for a while, or one of them hears nothing of the
// other.
struct Partition {
  std::size_t node = 0;
  Duration begin = 0ms;
  Duration lasts = 0ms;
  Way way = Way::both;
};

enum class Fate { leaves_done, leaves_failed, crashes, crashes_but_child_holds_sockets, is_stopped };
inline constexpr std::uint64_t fate_count = 5;

struct NodePlan {
  Role role = Role::worker;
  std::string node_id = {};
  std::uint32_t worker_num = 0;  // what it believes
  Duration start = 0ms;
  Fate fate = Fate::leaves_done;
  Duration fate_after = 500ms;  // its roster, or its start when `before_roster`
  bool before_roster = false;
  std::string host = "host-a";
  // After its roster: it is in the middle of a step for so long, and all others wait for it.
  std::optional<Duration> hangs_after = {};
  Duration hangs_for = 60s;
};

struct Plan {
  std::uint64_t seed = 0;
  std::uint32_t worker_num = 2;
  std::uint32_t server_num = 0;
  std::vector<NodePlan> nodes = {};
  Network network = {};
  std::vector<Partition> partitions = {};
  Duration scheduler_start = 0ms;
  std::optional<Duration> scheduler_crash = {};
  std::optional<Duration> scheduler_interrupt = {};
  std::chrono::milliseconds topo_timeout = 20s;
  std::chrono::milliseconds node_timeout = 3s;
  std::chrono::milliseconds receive_timeout = 4s;
  std::chrono::milliseconds retry_timeout = 15s;
};

struct NodeResult {
  std::shared_ptr<const Roster> roster = {};
  std::uint32_t rank = 0;
  std::optional<Failure> failure = {};
  bool job_ended = false;
  bool left_done = false;      // said Leave with status 0 before any failure
  bool process_ended = false;  // it exited by itself
  bool crashed = false;        // as planned
  bool stopped = false;
  TimePoint end{};
  TimePoint fault{};
  std::vector<std::pair<TimePoint, std::string>> told = {};  // of a job that does not go on, or goes on
};

struct RunResult {
  std::vector<NodeResult> nodes = {};
  bool scheduler_ended = false;
  bool scheduler_crashed = false;
  std::optional<Failure> scheduler_failure = {};
  TimePoint scheduler_end{};
  std::size_t event_count = 0;
  bool settled = false;  // ran out of events before the limit
};

class Simulator {
 public:
  explicit Simulator(Plan plan);
  RunResult run();

 private:
  struct Connection {
    std::size_t node = 0;
    bool node_open = false;
    bool scheduler_open = false;
    TimePoint to_scheduler_free{};  // keeps the order of what is under way
    TimePoint to_node_free{};
  };
  struct NodeProcess {
    NodePlan plan;
    std::unique_ptr<NodeMachine> machine;
    PeerId connection = 0;  // 0: none
    TimePoint formed{};
    TimePoint tick = TimePoint::max();
    bool alive = false;
    bool stopped = false;
    bool leave_called = false;
    std::vector<std::function<void()>> watchers;  // called when the process ends
  };
  struct Event {
    TimePoint at;
    std::uint64_t number;
    std::function<void()> act;
    bool operator<(const Event& other) const {
      return std::pair(other.at, other.number) < std::pair(at, number);
    }
  };

  double chance() { return random_.uniform(draw_++); }
  Duration delay();
  void at(TimePoint when, std::function<void()> act);
  void after(Duration wait, std::function<void()> act) { at(now_ + wait, std::move(act)); }

  void start_scheduler();
  void start_node(std::size_t index);
  void scheduler_step(const SchedulerEvent& event);
  void node_step(std::size_t index, const NodeEvent& event);
  void apply(const SchedulerActions& actions);
  void apply(std::size_t index, const NodeActions& actions);
  void schedule_scheduler_tick();
  void schedule_node_tick(std::size_t index);
  std::uint64_t steps_done(const NodeProcess& node) const;
  Activity activity_of(std::size_t index) const;

  void connect(std::size_t index);
  void send_to_scheduler(PeerId id, const Message& message);
  void send_to_node(PeerId id, const Message& message);
  void deliver(TimePoint& free, std::function<void()> act, TimePoint earliest = {});
  void tell_node_of_end(PeerId id);
  void tell_scheduler_of_end(PeerId id);
  // When what is sent now arrives at the earliest, behind a partition; nothing while there is none.
  std::optional<TimePoint> held_up(std::size_t node, Way way) const;
  void close_by_node(PeerId id);
  void close_by_scheduler(PeerId id);
  void cut(PeerId id);

  void meet_fate(std::size_t index);
  void leave(std::size_t index, std::int32_t status, const std::string& reason);
  void end_node(std::size_t index, bool child_holds_sockets);
  void end_scheduler();

  Plan plan_;
  RandomStream random_;
  std::uint64_t draw_ = 0;
  TimePoint now_{};
  std::uint64_t event_number_ = 0;
  std::priority_queue<Event> events_;
  std::unique_ptr<SchedulerMachine> scheduler_;
  bool scheduler_alive_ = false;
  TimePoint scheduler_tick_ = TimePoint::max();
  std::vector<std::function<void()>> scheduler_watchers_;
  std::vector<NodeProcess> nodes_;
  std::optional<std::size_t> hanging_ = {};  // the node that all others wait for
  TimePoint hanging_since_{};
  Duration hung_{};  // before
  std::map<PeerId, Connection> connections_;
  PeerId next_connection_ = 1;
  RunResult result_;
};

}  // namespace muster::cluster::sim
