#include "simulator.h"

#include <fmt/format.h>

namespace muster::cluster::sim {
namespace {

constexpr std::int32_t scheduler_pid = 1;
constexpr Duration time_limit = 300s;  // of virtual time: far behind every deadline of a plan
constexpr Duration step_time = 10ms;
constexpr std::string_view scheduler_host = "host-a";

}  // namespace

Simulator::Simulator(Plan plan) : plan_(std::move(plan)), random_(plan_.seed, hash_text("simulator")) {
  nodes_.resize(plan_.nodes.size());
  result_.nodes.resize(plan_.nodes.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].plan = plan_.nodes[i];
    if (nodes_[i].plan.worker_num == 0) nodes_[i].plan.worker_num = plan_.worker_num;
  }
}

RunResult Simulator::run() {
  at(TimePoint{} + plan_.scheduler_start, [this] { start_scheduler(); });
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    at(TimePoint{} + nodes_[i].plan.start, [this, i] { start_node(i); });
  if (plan_.scheduler_crash)
    at(TimePoint{} + *plan_.scheduler_crash, [this] {
      if (!scheduler_alive_) return;
      result_.scheduler_crashed = true;
      end_scheduler();
    });
  if (plan_.scheduler_interrupt)
    at(TimePoint{} + *plan_.scheduler_interrupt, [this] { scheduler_step(scheduler_event::Interrupted{}); });
  while (!events_.empty() && events_.top().at <= TimePoint{} + time_limit) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    ++result_.event_count;
    event.act();
  }
  result_.settled = events_.empty();
  return std::move(result_);
}

Duration Simulator::delay() {
  return 10us + Duration(static_cast<Duration::rep>(chance() *
                                                    static_cast<double>(plan_.network.delay_max.count())));
}

void Simulator::at(TimePoint when, std::function<void()> act) {
  events_.push({when, event_number_++, std::move(act)});
}

// --- processes ---------------------------------------------------------------------------------------------

void Simulator::start_scheduler() {
  scheduler_alive_ = true;
  scheduler_ =
      std::make_unique<SchedulerMachine>(SchedulerConfig{.worker_num = plan_.worker_num,
                                                         .server_num = plan_.server_num,
                                                         .topo_timeout = plan_.topo_timeout,
                                                         .node_timeout = plan_.node_timeout,
                                                         .job_id = plan_.seed + 1,
                                                         .seed = 42,
                                                         .pid = scheduler_pid,
                                                         .process_space = std::string(scheduler_host)},
                                         now_);
  schedule_scheduler_tick();
}

void Simulator::start_node(std::size_t index) {
  NodeProcess& node = nodes_[index];
  node.alive = true;
  Member member{.role = node.plan.role, .node_id = node.plan.node_id};
  member.pid = static_cast<std::int32_t>(index) + 100;
  member.process_space = node.plan.host;
  member.address = node.plan.host;
  node.machine = std::make_unique<NodeMachine>(NodeConfig{.member = member,
                                                          .worker_num = node.plan.worker_num,
                                                          .server_num = plan_.server_num,
                                                          .topo_timeout = plan_.topo_timeout,
                                                          .retry_timeout = plan_.retry_timeout,
                                                          .node_timeout = plan_.node_timeout,
                                                          .receive_timeout = plan_.receive_timeout,
                                                          .scheduler = "scheduler:1"},
                                               now_);
  schedule_node_tick(index);
  if (node.plan.before_roster) after(node.plan.fate_after, [this, index] { meet_fate(index); });
}

void Simulator::meet_fate(std::size_t index) {
  NodeProcess& node = nodes_[index];
  if (!node.alive || node.leave_called) return;
  result_.nodes[index].fault = now_;
  switch (node.plan.fate) {
    case Fate::leaves_done:
      if (node.plan.role == Role::worker) leave(index, 0, "");
      return;
    case Fate::leaves_failed:
      leave(index, 3, fmt::format("script {} failed", index));
      return;
    case Fate::crashes:
    case Fate::crashes_but_child_holds_sockets:
      result_.nodes[index].crashed = true;
      end_node(index, node.plan.fate == Fate::crashes_but_child_holds_sockets);
      return;
    case Fate::is_stopped:
      result_.nodes[index].stopped = true;
      node.stopped = true;
      return;
  }
}

void Simulator::leave(std::size_t index, std::int32_t status, const std::string& reason) {
  if (std::exchange(nodes_[index].leave_called, true)) return;
  result_.nodes[index].left_done = status == 0;
  node_step(index, node_event::Leave{status, reason});
}

void Simulator::end_node(std::size_t index, bool child_holds_sockets) {
  NodeProcess& node = nodes_[index];
  if (!std::exchange(node.alive, false)) return;
  result_.nodes[index].end = now_;
  if (node.connection != 0 && !child_holds_sockets) close_by_node(node.connection);
  for (const auto& watcher : node.watchers) after(delay(), watcher);
}

void Simulator::end_scheduler() {
  scheduler_alive_ = false;
  for (auto& [id, connection] : connections_) close_by_scheduler(id);
  for (const auto& watcher : scheduler_watchers_) after(delay(), watcher);
}

// --- machines ----------------------------------------------------------------------------------------------

void Simulator::scheduler_step(const SchedulerEvent& event) {
  if (!scheduler_alive_) return;
  apply(scheduler_->step(event, now_));
  if (scheduler_alive_) schedule_scheduler_tick();
}

void Simulator::schedule_scheduler_tick() {
  const TimePoint due = std::max(scheduler_->deadline(), now_);
  if (due >= scheduler_tick_) return;
  scheduler_tick_ = due;
  at(due, [this, due] {
    if (scheduler_tick_ != due) return;  // an earlier one was needed
    scheduler_tick_ = TimePoint::max();
    scheduler_step(scheduler_event::Tick{});
  });
}

void Simulator::node_step(std::size_t index, const NodeEvent& event) {
  NodeProcess& node = nodes_[index];
  if (!node.alive) return;
  if (node.stopped) return;
  apply(index, node.machine->step(event, {steps_done(node), {}, activity_of(index)}, now_));
  if (node.alive) schedule_node_tick(index);
}

std::uint64_t Simulator::steps_done(const NodeProcess& node) const {
  if (node.formed == TimePoint{}) return no_step;
  const TimePoint until = hanging_ ? hanging_since_ : now_;
  return static_cast<std::uint64_t>(std::max(Duration{}, until - node.formed - hung_) / step_time);
}

Activity Simulator::activity_of(std::size_t index) const {
  if (!hanging_ || hanging_ == index) return {.phase = WorkPhase::reading_data};
  return {.phase = WorkPhase::computing, .call = CallKind::all_reduce, .call_number = 18};
}

void Simulator::schedule_node_tick(std::size_t index) {
  NodeProcess& node = nodes_[index];
  if (node.machine->ended()) return;
  const TimePoint due = std::max(node.machine->deadline(), now_);
  if (due >= node.tick) return;
  node.tick = due;
  at(due, [this, index, due] {
    if (nodes_[index].tick != due) return;
    nodes_[index].tick = TimePoint::max();
    node_step(index, node_event::Tick{});
  });
}

void Simulator::apply(const SchedulerActions& actions) {
  for (const SchedulerAction& action : actions) {
    std::visit(Overloaded{[&](const scheduler_action::Send& a) { send_to_node(a.peer, a.message); },
                          [&](const scheduler_action::Share& a) { send_to_node(a.peer, *a.message); },
                          [&](const scheduler_action::Close& a) { close_by_scheduler(a.peer); },
                          [&](const scheduler_action::Watch& a) {
                            const std::size_t index = static_cast<std::size_t>(a.pid) - 100;
                            auto tell = [this, id = a.peer] { scheduler_step(scheduler_event::Exited{id}); };
                            if (nodes_[index].alive)
                              nodes_[index].watchers.push_back(tell);
                            else
                              after(0ms, tell);
                          },
                          [](const scheduler_action::Log&) {}, [](const scheduler_action::Record&) {},
                          [&](const scheduler_action::End& a) {
                            result_.scheduler_ended = true;
                            result_.scheduler_failure = a.failure;
                            result_.scheduler_end = now_;
                            end_scheduler();
                          }},
               action);
  }
}

void Simulator::apply(std::size_t index, const NodeActions& actions) {
  NodeProcess& node = nodes_[index];
  NodeResult& result = result_.nodes[index];
  for (const NodeAction& action : actions) {
    std::visit(
        Overloaded{[&](const node_action::Connect&) { connect(index); },
                   [&](const node_action::Disconnect&) {
                     if (node.connection != 0) close_by_node(node.connection);
                     node.connection = 0;
                   },
                   [&](const node_action::Send& a) { send_to_scheduler(node.connection, a.message); },
                   [&](const node_action::Watch& a) {
                     auto tell = [this, index, a] { node_step(index, node_event::Exited{a.role, a.rank}); };
                     auto& watchers = a.pid == scheduler_pid
                                          ? scheduler_watchers_
                                          : nodes_[static_cast<std::size_t>(a.pid) - 100].watchers;
                     const bool alive = a.pid == scheduler_pid
                                            ? scheduler_alive_
                                            : nodes_[static_cast<std::size_t>(a.pid) - 100].alive;
                     if (alive)
                       watchers.push_back(tell);
                     else
                       after(0ms, tell);
                   },
                   [&](const node_action::Formed& a) {
                     result.roster = a.roster;
                     result.rank = a.rank;
                     node.formed = now_;
                     if (node.plan.hangs_after) {
                       after(*node.plan.hangs_after, [this, index] {
                         hanging_ = index;
                         hanging_since_ = now_;
                       });
                       after(*node.plan.hangs_after + node.plan.hangs_for, [this] {
                         hung_ += now_ - hanging_since_;
                         hanging_.reset();
                       });
                     }
                     if (!node.plan.before_roster)
                       after(node.plan.fate_after, [this, index] { meet_fate(index); });
                   },
                   [&](const node_action::JobEnded& a) {
                     result.job_ended = true;
                     result.failure = a.failure;
                     // The process ends soon: its script fails, or a server returns.
                     after(delay(), [this, index] {
                       leave(index, 1, "the job failed");
                       after(delay(), [this, index] {
                         if (nodes_[index].alive && !nodes_[index].stopped) {
                           result_.nodes[index].process_ended = true;
                           end_node(index, false);
                         }
                       });
                     });
                   },
                   [&](const node_action::Left&) {
                     after(delay(), [this, index] {
                       if (nodes_[index].alive && !nodes_[index].stopped) {
                         result_.nodes[index].process_ended = true;
                         end_node(index, false);
                       }
                     });
                   },
                   [](const node_action::AskEndpoint&) {}, [](const node_action::PeerLeft&) {},
                   [](const node_action::TakeStacks&) {},
                   [&](const node_action::Log& line) {
                     const bool is_of_pace = line.text.find("step has been finished") != std::string::npos ||
                                             line.text.find("the job goes on") != std::string::npos;
                     if (is_of_pace) result.told.emplace_back(now_, line.text);
                   }},
        action);
  }
}

// --- network -----------------------------------------------------------------------------------------------

void Simulator::connect(std::size_t index) {
  const PeerId id = next_connection_++;
  nodes_[index].connection = id;
  connections_[id] = Connection{.node = index};
  TimePoint answered = now_ + delay();
  for (const Way way : {Way::to_scheduler, Way::to_node})
    if (const auto until = held_up(index, way)) answered = std::max(answered, *until);
  at(answered, [this, index, id] {
    if (nodes_[index].connection != id) return;
    if (!scheduler_alive_) {
      nodes_[index].connection = 0;
      node_step(index, node_event::Disconnected{"connection refused"});
      return;
    }
    connections_[id].node_open = connections_[id].scheduler_open = true;
    node_step(index, node_event::Connected{});
  });
}

std::optional<TimePoint> Simulator::held_up(std::size_t node, Way way) const {
  std::optional<TimePoint> until;
  for (const Partition& partition : plan_.partitions) {
    const TimePoint begin = TimePoint{} + partition.begin;
    const TimePoint end = begin + partition.lasts;
    const bool is_held = partition.node == node && (partition.way == Way::both || partition.way == way);
    if (is_held && begin <= now_ && now_ < end) until = std::max(until.value_or(end), end);
  }
  return until;
}

void Simulator::deliver(TimePoint& free, std::function<void()> act, TimePoint earliest) {
  TimePoint arrival = std::max(now_ + delay(), earliest);
  if (!plan_.network.reorders) arrival = free = std::max(arrival, free);
  at(arrival, std::move(act));
}

void Simulator::send_to_scheduler(PeerId id, const Message& message) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.node_open) return;
  if (held_up(found->second.node, Way::to_scheduler)) return;
  if (chance() < plan_.network.cut) return cut(id);
  const int copies = chance() < plan_.network.drop ? 0 : chance() < plan_.network.duplicate ? 2 : 1;
  for (int i = 0; i < copies; ++i)
    deliver(found->second.to_scheduler_free, [this, id, message] {
      if (connections_[id].scheduler_open) scheduler_step(scheduler_event::Received{id, message});
    });
}

void Simulator::send_to_node(PeerId id, const Message& message) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.scheduler_open) return;
  if (held_up(found->second.node, Way::to_node)) return;
  if (chance() < plan_.network.cut) return cut(id);
  const int copies = chance() < plan_.network.drop ? 0 : chance() < plan_.network.duplicate ? 2 : 1;
  for (int i = 0; i < copies; ++i)
    deliver(found->second.to_node_free, [this, id, message] {
      if (nodes_[connections_[id].node].connection == id && connections_[id].node_open)
        node_step(connections_[id].node, node_event::Received{message});
    });
}

// The other side learns of an end behind everything that is under way, and behind a partition: unlike words,
// it is never lost.
void Simulator::tell_scheduler_of_end(PeerId id) {
  Connection& connection = connections_[id];
  const TimePoint earliest = held_up(connection.node, Way::to_scheduler).value_or(now_);
  deliver(
      connection.to_scheduler_free,
      [this, id] {
        if (std::exchange(connections_[id].scheduler_open, false))
          scheduler_step(scheduler_event::Closed{id});
      },
      earliest);
}

void Simulator::tell_node_of_end(PeerId id) {
  Connection& connection = connections_[id];
  const TimePoint earliest = held_up(connection.node, Way::to_node).value_or(now_);
  deliver(
      connection.to_node_free,
      [this, id] {
        Connection& closed = connections_[id];
        if (!std::exchange(closed.node_open, false) || nodes_[closed.node].connection != id) return;
        nodes_[closed.node].connection = 0;
        node_step(closed.node, node_event::Disconnected{"connection reset"});
      },
      earliest);
}

void Simulator::close_by_node(PeerId id) {
  if (std::exchange(connections_[id].node_open, false)) tell_scheduler_of_end(id);
}

void Simulator::close_by_scheduler(PeerId id) {
  if (std::exchange(connections_[id].scheduler_open, false)) tell_node_of_end(id);
}

void Simulator::cut(PeerId id) {
  if (!connections_[id].node_open || !connections_[id].scheduler_open) return;
  tell_scheduler_of_end(id);
  tell_node_of_end(id);
}

}  // namespace muster::cluster::sim
