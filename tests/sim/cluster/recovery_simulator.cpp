#include "recovery_simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace muster::cluster::sim {
namespace {

constexpr std::int32_t scheduler_pid = 1;  // plus its life
constexpr std::int32_t first_pid = 1000;
constexpr Duration time_limit = 600s;
constexpr Duration step_time = 10ms;
constexpr std::string_view scheduler_host = "host-a";
constexpr std::size_t remembered_max = 32;
constexpr Duration time_to_first_point = 100ms;
// Drawn from the clock: more than epochs that anybody has counted up to by then.
constexpr std::uint64_t adopted_epoch_min = 1000;

}  // namespace

RecoverySimulator::RecoverySimulator(RecoveryPlan plan)
    : plan_(std::move(plan)), random_(plan_.seed, hash_text("recovery simulator")) {
  plan_.hosts.resize(plan_.worker_num, "host-a");
  lines_.resize(plan_.worker_num);
  folders_.resize(plan_.worker_num);
}

RecoveryResult RecoverySimulator::run() {
  after(0ms, [this] { start_scheduler(); });
  for (std::size_t i = 0; i < plan_.worker_num; ++i) after(delay() * 10, [this, i] { start_process(i); });
  for (const Fault& fault : plan_.faults) after(fault.when, [this, fault] { meet(fault); });
  while (!events_.empty() && events_.top().at <= TimePoint{} + time_limit) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    event.act();
  }
  result_.settled = events_.empty();
  return std::move(result_);
}

Duration RecoverySimulator::delay() {
  const double part = random_.uniform(draw_++);
  return 10us + Duration(static_cast<Duration::rep>(part * static_cast<double>(plan_.delay_max.count())));
}

void RecoverySimulator::at(TimePoint when, std::function<void()> act) {
  events_.push({when, event_number_++, std::move(act)});
}

void RecoverySimulator::meet(const Fault& fault) {
  if (result_.ended_well || result_.failure) return;
  const auto victim = running(fault.node);
  const auto again = [&](std::size_t node) {
    after(fault.lasts, [this, node] { start_again_unless_there(node); });
  };
  switch (fault.kind) {
    case FaultKind::kills:
      if (victim) kill_process(*victim), again(fault.node);
      return;
    case FaultKind::stops:
      if (victim) stop_process(*victim, fault.lasts);
      return;
    case FaultKind::stops_with_duplicate:
      if (!victim) return;
      stop_process(*victim, fault.lasts);
      after(fault.lasts / 3, [this, node = fault.node] { start_process(node); });
      return;
    case FaultKind::starts_a_duplicate:
      if (victim) start_process(fault.node);
      return;
    case FaultKind::cuts_connection:
      if (!victim || processes_[*victim]->connection == 0) return;
      close_by_scheduler(processes_[*victim]->connection);
      if (scheduler_alive_)
        on_scheduler(
            [this, id = processes_[*victim]->connection] { scheduler_step(scheduler_event::Closed{id}); });
      return;
    case FaultKind::loses_link:
      if (victim && processes_[*victim]->epoch != 0)
        process_step(*victim, node_event::LinkLost{processes_[*victim]->epoch, "cut"});
      return;
    case FaultKind::kills_scheduler:
      // Half of them die between two actions of one step, where a record is written and nobody told.
      if (random_.uniform(draw_++) < 0.5)
        kill_scheduler(fault.lasts);
      else
        dies_at_record_ = static_cast<std::size_t>(fault.lasts / 1ms);
      return;
    case FaultKind::stops_scheduler:
      scheduler_stopped_ = scheduler_alive_;
      after(fault.lasts, [this] {
        scheduler_stopped_ = false;
        for (const auto& act : std::exchange(scheduler_missed_, {})) act();
      });
      return;
    case FaultKind::cuts_off:
    case FaultKind::cuts_off_to_scheduler:
    case FaultKind::cuts_off_from_scheduler:
      return cut_off(fault);
    case FaultKind::replays:
      return replay(fault.node);
    case FaultKind::impersonates:
      return impersonate(fault.node);
    case FaultKind::loses_log_and_node:
      if (victim) kill_process(*victim), again(fault.node);
      [[fallthrough]];
    case FaultKind::loses_log:
      kill_scheduler(fault.lasts / 2);
      lose_log();
      return;
    case FaultKind::loses_log_and_everybody:
      lose_log();
      [[fallthrough]];
    case FaultKind::kills_everybody:
      kill_scheduler(fault.lasts / 2);
      [[fallthrough]];
    case FaultKind::kills_all_workers:
      for (std::size_t i = 0; i < plan_.worker_num; ++i)
        if (const auto process = running(i)) kill_process(*process), again(i);
      return;
  }
}

void RecoverySimulator::lose_log() {
  disk_.reset();
  has_lost_log_ = true;
}

void RecoverySimulator::cut_off(const Fault& fault) {
  Line& line = lines_[fault.node];
  if (fault.kind != FaultKind::cuts_off_from_scheduler)
    line.to_scheduler = std::max(line.to_scheduler, now_ + fault.lasts);
  if (fault.kind != FaultKind::cuts_off_to_scheduler)
    line.to_node = std::max(line.to_node, now_ + fault.lasts);
}

// What this process and those before it on the node said and heard; who somebody is (Register) only from
// itself, since that is all by which the scheduler knows it.
void RecoverySimulator::replay(std::size_t node) {
  const auto victim = running(node);
  if (!victim || !disk_ || !disk_->roster || processes_[*victim]->connection == 0) return;
  const PeerId id = processes_[*victim]->connection;
  const std::uint64_t epoch = disk_->roster->epoch;
  const auto is_old = [&](const Said& said) {
    const bool is_name = std::holds_alternative<message::Register>(said.message.body);
    return said.message.epoch != 0 && said.message.epoch < epoch && (!is_name || said.process == *victim);
  };
  for (const Said& said : std::vector(lines_[node].said_to_scheduler))
    if (is_old(said)) send_to_scheduler(id, said.message), ++result_.replayed;
  if (processes_[*victim]->epoch != epoch) return;  // what is of an earlier epoch may be new to it
  for (const Said& said : std::vector(lines_[node].said_to_node))
    if (is_old(said)) send_to_node(id, said.message), ++result_.replayed;
}

// With the certificate of that node, and with that of another one. Once a newer process may have its place,
// an incarnation is nobody's any more: who comes with it is a new process like others.
void RecoverySimulator::impersonate(std::size_t node) {
  if (!disk_ || !disk_->roster) return;
  const std::shared_ptr<const Roster> roster = disk_->roster;
  for (std::size_t i = roster->workers[node].incarnation; i < processes_.size(); ++i)
    if (!plan_.are_named || processes_[i]->node == node) return;
  for (const std::size_t own : {node, (node + 1) % roster->workers.size()}) {
    const PeerId id = next_connection_++;
    const auto say = [&](MessageBody body, std::uint64_t job, std::uint64_t epoch) {
      scheduler_step(scheduler_event::Received{id, {job, epoch, std::move(body)}});
    };
    message::Register request{.member = roster->workers[node],
                              .worker_num = plan_.worker_num,
                              .recovers = true,
                              .secret = {id, id}};
    request.member.node_id = roster->workers[own].node_id;
    say(request, roster->job_id, roster->epoch);
    say(request, 0, 0);
    say(message::Rejoin{{.port = 666}, {}}, roster->job_id, roster->epoch);
    say(message::Leave{}, roster->job_id, roster->epoch);
    scheduler_step(scheduler_event::Closed{id});
  }
}

void RecoverySimulator::remember(std::vector<Said>& said, std::size_t process, const Message& message) {
  if (message.epoch != 0 && said.size() < remembered_max) said.push_back({process, message});
}

// --- processes ---------------------------------------------------------------------------------------------

std::optional<std::size_t> RecoverySimulator::running(std::size_t node) const {
  for (std::size_t i = processes_.size(); i-- > 0;)
    if (processes_[i]->node == node && processes_[i]->alive && !processes_[i]->leave_called) return i;
  return std::nullopt;
}

void RecoverySimulator::start_again_unless_there(std::size_t node) {
  if (result_.ended_well || result_.failure || running(node)) return;
  // The last one counts that had the place: who was done may have been started once more.
  bool is_done = false;
  for (const ProcessResult& process : result_.processes)
    if (process.node == node && !process.failure) is_done = process.left_done;
  if (!is_done) start_process(node);
}

void RecoverySimulator::start_process(std::size_t node) {
  if (result_.ended_well) return;
  const std::size_t index = processes_.size();
  auto process = std::make_unique<Process>();
  process->node = node;
  process->member.node_id = plan_.are_named ? std::to_string(node) : fmt::format("node-{:08x}", index);
  process->member.is_named = plan_.are_named;
  process->member.pid = first_pid + static_cast<std::int32_t>(index);
  process->member.process_space = process->member.address = plan_.hosts[node];
  process->member.incarnation = index + 1;
  process->member.data_port = 1;
  process->machine = std::make_unique<NodeMachine>(NodeConfig{.member = process->member,
                                                              .worker_num = plan_.worker_num,
                                                              .topo_timeout = plan_.topo_timeout,
                                                              .retry_timeout = 60s,
                                                              .node_timeout = plan_.node_timeout,
                                                              .receive_timeout = 20s,
                                                              .scheduler = "scheduler:1",
                                                              .recovers = true,
                                                              .secret = {index + 1, 1}},
                                                   now_);
  result_.processes.push_back({.node = node, .incarnation = index + 1});
  processes_.push_back(std::move(process));
  schedule_process_tick(index);
}

MembershipReport RecoverySimulator::memory_of(std::size_t node) const {
  const Folder& folder = folders_[node];
  if (folder.job_id == 0) return {};
  return {.found = {{.job_id = folder.job_id,
                     .worker_num = plan_.worker_num,
                     .seed = folder.seed,
                     .is_done = folder.is_done}}};
}

void RecoverySimulator::end_process(std::size_t index) {
  Process& process = *processes_[index];
  if (!std::exchange(process.alive, false)) return;
  if (process.connection != 0) close_by_node(process.connection);
  process.connection = 0;
  for (const auto& watcher : process.watchers) after(delay(), watcher);
}

void RecoverySimulator::kill_process(std::size_t index) {
  result_.processes[index].killed = true;
  end_process(index);
}

void RecoverySimulator::stop_process(std::size_t index, Duration time) {
  processes_[index]->stopped = true;
  after(time, [this, index] {
    processes_[index]->stopped = false;
    for (const auto& act : std::exchange(processes_[index]->missed, {})) act();
  });
}

void RecoverySimulator::on_process(std::size_t index, std::function<void()> act) {
  Process& process = *processes_[index];
  if (!process.alive) return;
  if (process.stopped)
    process.missed.push_back([this, index, act = std::move(act)] {
      if (processes_[index]->alive) act();
    });
  else
    act();
}

void RecoverySimulator::process_step(std::size_t index, const NodeEvent& event) {
  on_process(index, [this, index, event] {
    const auto steps = static_cast<std::uint64_t>(now_.time_since_epoch() / step_time);
    const NodeReport report{processes_[index]->epoch == 0 ? no_step : steps, progress_of(index)};
    apply(index, processes_[index]->machine->step(event, report, now_));
    if (processes_[index]->alive) schedule_process_tick(index);
  });
}

void RecoverySimulator::schedule_process_tick(std::size_t index) {
  Process& process = *processes_[index];
  if (process.machine->ended()) return;
  const TimePoint due = std::max(process.machine->deadline(), now_);
  if (due >= process.tick) return;
  process.tick = due;
  at(due, [this, index, due] {
    on_process(index, [this, index, due] {
      if (processes_[index]->tick != due) return;
      processes_[index]->tick = TimePoint::max();
      process_step(index, node_event::Tick{});
    });
  });
}

void RecoverySimulator::apply(std::size_t index, const NodeActions& actions) {
  Process& process = *processes_[index];
  const auto end_soon = [this, index] {
    after(delay(), [this, index] {
      on_process(index, [this, index] {
        result_.processes[index].ended = true;
        end_process(index);
        // Somebody sees that nobody is there any more.
        if (!result_.failure)
          after(100ms, [this, node = processes_[index]->node] { start_again_unless_there(node); });
      });
    });
  };
  const auto watch = [this, index](const node_action::Watch& a) {
    auto tell = [this, index, a] { process_step(index, node_event::Exited{a.role, a.rank, a.incarnation}); };
    if (a.role == Role::scheduler) {
      const bool is_it =
          scheduler_alive_ && a.pid == scheduler_pid + static_cast<std::int32_t>(scheduler_life_);
      return is_it ? scheduler_watchers_.push_back(tell) : after(0ms, tell);
    }
    Process& watched = *processes_[static_cast<std::size_t>(a.pid - first_pid)];
    watched.alive ? watched.watchers.push_back(tell) : after(0ms, tell);
  };
  for (const NodeAction& action : actions) {
    std::visit(
        Overloaded{[&](const node_action::Connect&) { connect(index); },
                   [&](const node_action::Disconnect&) {
                     if (process.connection != 0) close_by_node(process.connection);
                     process.connection = 0;
                   },
                   [&](const node_action::Send& a) { send_to_scheduler(process.connection, a.message); },
                   watch,
                   [&](const node_action::AskEndpoint&) {
                     process.epoch = 0;
                     const auto port = ++process.member.data_port;
                     after(delay(), [this, index, port] {
                       process_step(index, node_event::Endpoint{DataEndpoint{port, "there"}});
                     });
                   },
                   [&](const node_action::Formed& a) { train(index, a.roster); },
                   [&](const node_action::JobEnded& a) {
                     result_.processes[index].failure = a.failure;
                     if (a.failure) result_.processes[index].left_done = false;  // nobody believed it
                     after(delay(), [this, index] { on_process(index, [this, index] { leave(index, 1); }); });
                     end_soon();
                   },
                   [&](const node_action::Left&) { end_soon(); }, [](const node_action::PeerLeft&) {},
                   [](const node_action::TakeStacks&) {}, [](const node_action::Log&) {}},
        action);
  }
}

// Undisturbed for long enough, it is done.
void RecoverySimulator::train(std::size_t index, const std::shared_ptr<const Roster>& roster) {
  check_roster(index, roster);
  result_.processes[index].epochs.emplace_back(roster->epoch, now_);
  processes_[index]->epoch = roster->epoch;
  open_folder(index, *roster);
  after(time_to_first_point, [this, index, roster] {
    on_process(index, [this, index, roster] {
      if (processes_[index]->epoch == roster->epoch) keep_point(index, *roster);
    });
  });
  after(plan_.training_time + delay(), [this, index, epoch = roster->epoch] {
    on_process(index, [this, index, epoch] {
      if (processes_[index]->epoch != epoch) return;
      make_call(index);
      leave(index, 0);
    });
  });
}

Progress RecoverySimulator::progress_of(std::size_t index) const {
  const Process& process = *processes_[index];
  const Folder& folder = folders_[process.node];
  const bool has_kept = process.opened_job != 0 && folder.end_of == process.opened_job && owns_folder(index);
  return {.calls = process.has_made_call ? 1U : 0U,
          .has_point = process.has_point,
          .kept_calls = has_kept ? 1U : 0U};
}

void RecoverySimulator::make_call(std::size_t index) {
  Process& process = *processes_[index];
  if (!plan_.makes_call || process.has_made_call) return;
  process.has_made_call = true;
  process.left = now_;
  if (owns_folder(index) && !plan_.full_disks.contains(process.node))
    folders_[process.node].end_of = process.opened_job;
}

// As the first call of a process does: from whomever its job has there. It fails where points are of another
// job that is not done.
void RecoverySimulator::open_folder(std::size_t index, const Roster& roster) {
  Process& process = *processes_[index];
  if (process.opened_job != 0) return;
  Folder& folder = folders_[process.node];
  if (folder.job_id != 0 && folder.job_id != roster.job_id && !folder.is_done) return leave(index, 1);
  process.opened_job = roster.job_id;
  folder.owners[roster.job_id] = index;
  folder.is_done = false;
  if (folder.job_id != roster.job_id) folder.job_id = 0;  // what is done is cleared away
}

bool RecoverySimulator::owns_folder(std::size_t index) const {
  const Process& process = *processes_[index];
  const auto owner = folders_[process.node].owners.find(process.opened_job);
  return owner != folders_[process.node].owners.end() && owner->second == index;
}

bool RecoverySimulator::is_replaced(std::size_t index) const {
  return processes_[index]->opened_job != 0 && !owns_folder(index);
}

void RecoverySimulator::keep_point(std::size_t index, const Roster& roster) {
  processes_[index]->has_point = true;
  Folder& folder = folders_[processes_[index]->node];
  if (!owns_folder(index)) return;  // a newer incarnation has taken it
  folder.job_id = roster.job_id;
  folder.seed = roster.seed;
  folder.is_done = false;
}

void RecoverySimulator::leave(std::size_t index, std::int32_t status) {
  if (std::exchange(processes_[index]->leave_called, true)) return;
  if (status == 0 && is_replaced(index)) return process_step(index, node_event::Replaced{newer_has_folder});
  Folder& folder = folders_[processes_[index]->node];
  result_.processes[index].kept_end = status == 0 && owns_folder(index);
  folder.is_done = folder.is_done || result_.processes[index].kept_end;
  result_.processes[index].left_done = status == 0 && !result_.processes[index].failure;
  process_step(index, node_event::Leave{status, "it failed"});
}

// --- the scheduler -----------------------------------------------------------------------------------------

void RecoverySimulator::start_scheduler() {
  if (scheduler_alive_) return;
  ++scheduler_life_;
  if (disk_ && disk_->ended_well) result_.ended_well = true;  // and it died before it could say so
  if (!disk_ || !disk_->is_unfinished())
    disk_ = SavedJob{.job = {.job_id = 1000 + scheduler_life_,
                             .seed = 42,
                             .worker_num = plan_.worker_num,
                             .ended_job_id = disk_ && disk_->ended_well ? disk_->job.job_id : 0}};
  SchedulerConfig config{
      .worker_num = plan_.worker_num,
      .topo_timeout = plan_.topo_timeout,
      .node_timeout = plan_.node_timeout,
      .job_id = disk_->job.job_id,
      .seed = disk_->job.seed,
      .pid = scheduler_pid + static_cast<std::int32_t>(scheduler_life_),
      .process_space = std::string(scheduler_host),
      .recovers = true,
      .ended_job_id = disk_->job.ended_job_id,
      .adopted_epoch = adopted_epoch_min + static_cast<std::uint64_t>(now_.time_since_epoch() / 1ms)};
  if (disk_->roster) config.saved = disk_;
  scheduler_ = std::make_unique<SchedulerMachine>(config, now_);
  scheduler_alive_ = true;
  scheduler_stopped_ = false;
  scheduler_tick_ = TimePoint::max();
  schedule_scheduler_tick();
}

void RecoverySimulator::kill_scheduler(Duration until_restart) {
  if (!scheduler_alive_) return;
  scheduler_alive_ = false;
  scheduler_missed_.clear();
  dies_at_record_.reset();
  for (auto& [id, connection] : connections_) close_by_scheduler(id);
  for (const auto& watcher : std::exchange(scheduler_watchers_, {})) after(delay(), watcher);
  const bool had_ended = result_.ended_well || result_.failure;
  if (!had_ended) after(until_restart, [this] { start_scheduler(); });
}

void RecoverySimulator::on_scheduler(std::function<void()> act) {
  if (!scheduler_alive_) return;
  if (scheduler_stopped_)
    scheduler_missed_.push_back([this, life = scheduler_life_, act = std::move(act)] {
      if (scheduler_alive_ && life == scheduler_life_) act();
    });
  else
    act();
}

void RecoverySimulator::scheduler_step(const SchedulerEvent& event) {
  on_scheduler([this, event] {
    apply(scheduler_->step(event, now_));
    if (scheduler_alive_) schedule_scheduler_tick();
  });
}

void RecoverySimulator::schedule_scheduler_tick() {
  const TimePoint due = std::max(scheduler_->deadline(), now_);
  if (due >= scheduler_tick_) return;
  scheduler_tick_ = due;
  at(due, [this, due, life = scheduler_life_] {
    if (life != scheduler_life_) return;
    on_scheduler([this, due] {
      if (scheduler_tick_ != due) return;
      scheduler_tick_ = TimePoint::max();
      scheduler_step(scheduler_event::Tick{});
    });
  });
}

void RecoverySimulator::apply(const SchedulerActions& actions) {
  for (const SchedulerAction& action : actions) {
    if (!scheduler_alive_) return;
    std::visit(Overloaded{[&](const scheduler_action::Send& a) { send_to_node(a.peer, a.message); },
                          [&](const scheduler_action::Share& a) { send_to_node(a.peer, *a.message); },
                          [&](const scheduler_action::Close& a) { close_by_scheduler(a.peer); },
                          [&](const scheduler_action::Watch& a) {
                            Process& watched = *processes_[static_cast<std::size_t>(a.pid - first_pid)];
                            auto tell = [this, id = a.peer, life = scheduler_life_] {
                              if (life == scheduler_life_) scheduler_step(scheduler_event::Exited{id});
                            };
                            watched.alive ? watched.watchers.push_back(tell) : after(0ms, tell);
                          },
                          [&](const scheduler_action::Record& a) {
                            check_record(a.record);
                            disk_->apply(a.record);
                            if (!dies_at_record_) return;
                            kill_scheduler(std::chrono::milliseconds(*dies_at_record_));
                          },
                          [](const scheduler_action::Log&) {},
                          [&](const scheduler_action::End& a) {
                            if (!result_.ended_well) result_.failure = a.failure;
                            result_.ended_well = !result_.failure;
                            result_.end = now_;
                            kill_scheduler(0ms);
                          }},
               action);
  }
}

}  // namespace muster::cluster::sim
