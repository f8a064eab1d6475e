// A recovering job in one thread: the real state machines, processes that die, stop, wake and are started
// again, connections that break, a scheduler that dies and comes back with what it had recorded. The same
// seed gives the same run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/cluster/node.h"
#include "muster/cluster/scheduler.h"

namespace muster::cluster::sim {

inline const std::string newer_has_folder = "a newer process has its folder";

using namespace std::chrono_literals;

enum class FaultKind {
  kills,
  stops,                 // and wakes after `lasts`
  stops_with_duplicate,  // while it is stopped, somebody starts it again
  starts_a_duplicate,    // of a process that lives
  cuts_connection,
  loses_link,  // the data plane of one
  kills_scheduler,
  stops_scheduler,
  kills_all_workers,
  kills_everybody,
  cuts_off,  // the host of a node: what is said meanwhile arrives after `lasts`, as TCP brings it
  cuts_off_to_scheduler,
  cuts_off_from_scheduler,
  replays,             // what was said on connections of this node in earlier epochs is said again, both ways
  impersonates,        // somebody says that it is the process of this node, and knows of it what rosters say
  loses_log,           // the scheduler dies, and is started again on another host
  loses_log_and_node,  // and the node with it
  loses_log_and_everybody,
};
inline constexpr std::uint64_t fault_kind_count = 10;  // without those of the network
inline constexpr std::uint64_t schedule_fault_kind_count = 18;

struct Fault {
  Duration when = 0ms;
  FaultKind kind = FaultKind::kills;
  std::size_t node = 0;
  Duration lasts = 0ms;  // until it is started again, or wakes
};

struct RecoveryPlan {
  std::uint64_t seed = 0;
  std::uint32_t worker_num = 2;
  bool are_named = true;
  std::vector<std::string> hosts = {};  // of the nodes
  std::vector<Fault> faults = {};
  Duration delay_max = 2ms;
  Duration training_time = 5s;  // undisturbed in one epoch: then all are done
  std::chrono::milliseconds topo_timeout = 60s;
  std::chrono::milliseconds node_timeout = 3s;
  bool makes_call = false;                // the training is a numbered call, whose end is kept
  std::set<std::size_t> full_disks = {};  // of nodes: they do not keep it
};

// A process of a worker; a node has several one after the other, and stale incarnations at the same time.
struct ProcessResult {
  std::size_t node = 0;
  std::uint64_t incarnation = 0;
  std::vector<std::pair<std::uint64_t, TimePoint>> epochs = {};  // that formed for it
  std::optional<Failure> failure = {};
  bool left_done = false;
  bool kept_end = false;  // in its folder, which was its own then
  bool ended = false;     // by itself
  bool killed = false;
};

struct RecoveryResult {
  std::vector<ProcessResult> processes = {};
  std::map<std::uint64_t, std::shared_ptr<const Roster>> rosters = {};  // that processes got, by epoch
  std::set<std::uint64_t> jobs = {};                                    // ids of those
  std::shared_ptr<const Roster> last = {};                              // as a scheduler recorded it
  std::vector<std::string> broken = {};                                 // promises
  bool ended_well = false;
  std::optional<Failure> failure = {};
  bool settled = false;
  std::uint64_t replayed = 0;  // words of earlier epochs
  TimePoint end{};
  Duration longest_recovery = 0ms;  // from the last process's start to the epoch with it
};

class RecoverySimulator {
 public:
  explicit RecoverySimulator(RecoveryPlan plan);
  RecoveryResult run();

 private:
  struct Process {
    std::size_t node = 0;
    std::unique_ptr<NodeMachine> machine;
    Member member;
    MembershipReport memory;  // as it came last
    PeerId connection = 0;
    TimePoint tick = TimePoint::max();
    std::uint64_t epoch = 0;  // that it trains in; 0: none
    bool alive = true;
    bool stopped = false;
    bool leave_called = false;
    bool has_point = false;
    bool has_made_call = false;
    TimePoint left{};
    std::uint64_t opened_job = 0;                    // whose folder it has opened
    std::vector<std::function<void()>> missed = {};  // while stopped
    std::vector<std::function<void()>> watchers = {};
  };
  // MS_RECOVERY_PATH of a node, with points of one job, which may not be the only one that has a folder
  // there.
  struct Folder {
    std::uint64_t job_id = 0;
    std::uint64_t seed = 0;
    bool is_done = false;
    std::uint64_t end_of = 0;                          // the job whose call's end is here
    std::map<std::uint64_t, std::size_t> owners = {};  // by job: the process that has opened it last
  };
  struct Said {
    std::size_t process = 0;
    Message message;
  };
  struct Line {                // between a node's host and the scheduler's
    TimePoint to_scheduler{};  // nothing arrives before
    TimePoint to_node{};
    std::vector<Said> said_to_scheduler = {};  // for replays
    std::vector<Said> said_to_node = {};
  };
  struct Connection {
    std::size_t process = 0;
    std::uint64_t scheduler = 0;  // which life of it
    bool node_open = false;
    bool scheduler_open = false;
    TimePoint to_scheduler_free{};
    TimePoint to_node_free{};
  };
  struct Event {
    TimePoint at;
    std::uint64_t number;
    std::function<void()> act;
    bool operator<(const Event& other) const {
      return std::pair(other.at, other.number) < std::pair(at, number);
    }
  };

  Duration delay();
  void at(TimePoint when, std::function<void()> act);
  void after(Duration wait, std::function<void()> act) { at(now_ + wait, std::move(act)); }
  void meet(const Fault& fault);
  void lose_log();
  void cut_off(const Fault& fault);
  void replay(std::size_t node);
  void impersonate(std::size_t node);
  static void remember(std::vector<Said>& said, std::size_t process, const Message& message);
  Line& line_of(const Connection& connection) { return lines_[processes_[connection.process]->node]; }

  void start_process(std::size_t node);
  void start_again_unless_there(std::size_t node);
  void kill_process(std::size_t process);
  MembershipReport memory_of(std::size_t node) const;
  void end_process(std::size_t process);
  void stop_process(std::size_t process, Duration time);
  std::optional<std::size_t> running(std::size_t node) const;
  // On a process: later, when it is stopped; never, when it is dead.
  void on_process(std::size_t process, std::function<void()> act);
  void process_step(std::size_t process, const NodeEvent& event);
  void apply(std::size_t process, const NodeActions& actions);
  void train(std::size_t process, const std::shared_ptr<const Roster>& roster);
  void open_folder(std::size_t process, const Roster& roster);
  bool owns_folder(std::size_t process) const;
  bool is_replaced(std::size_t process) const;
  void keep_point(std::size_t process, const Roster& roster);
  void leave(std::size_t process, std::int32_t status);
  void schedule_process_tick(std::size_t process);

  void start_scheduler();
  void kill_scheduler(Duration until_restart);
  void on_scheduler(std::function<void()> act);
  void scheduler_step(const SchedulerEvent& event);
  void apply(const SchedulerActions& actions);
  void schedule_scheduler_tick();

  void connect(std::size_t process);
  void send_to_scheduler(PeerId id, const Message& message);
  void send_to_node(PeerId id, const Message& message);
  void close_by_node(PeerId id);
  void close_by_scheduler(PeerId id);
  void expect_may_hear(std::size_t process, const Message& message);
  void check_roster(std::size_t process, const std::shared_ptr<const Roster>& roster);
  void check_ranks(const Roster& roster);
  void check_record(const Record& record);
  void check_left(const record::Left& left);
  Progress progress_of(std::size_t process) const;
  void make_call(std::size_t process);
  const std::set<std::uint64_t>& members(const std::shared_ptr<const Roster>& roster);

  RecoveryPlan plan_;
  RandomStream random_;
  std::uint64_t draw_ = 0;
  TimePoint now_{};
  std::uint64_t event_number_ = 0;
  std::priority_queue<Event> events_;

  std::vector<std::unique_ptr<Process>> processes_;
  std::unique_ptr<SchedulerMachine> scheduler_;
  std::uint64_t scheduler_life_ = 0;
  bool scheduler_alive_ = false;
  bool scheduler_stopped_ = false;
  std::vector<std::function<void()>> scheduler_missed_;
  std::vector<std::function<void()>> scheduler_watchers_;
  TimePoint scheduler_tick_ = TimePoint::max();
  std::optional<SavedJob> disk_;
  bool has_lost_log_ = false;
  std::set<std::uint32_t> left_;      // ranks, as recorded
  std::set<std::uint64_t> given_up_;  // jobs that were lost with a log
  std::optional<std::size_t> dies_at_record_ = {};

  std::map<PeerId, Connection> connections_;
  std::vector<Line> lines_;          // by node
  std::vector<Folder> folders_;      // by node
  std::set<std::uint64_t> members_;  // incarnations, of `members_of_`
  std::shared_ptr<const Roster> members_of_;
  PeerId next_connection_ = 1;
  RecoveryResult result_;
};

}  // namespace muster::cluster::sim
