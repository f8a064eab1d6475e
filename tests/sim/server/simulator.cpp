#include "tests/sim/server/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <queue>

#include "tests/sim/server/processes.h"

namespace muster::server::sim {
namespace {

using Time = std::uint64_t;
constexpr Time retry_time = 60;
constexpr Time upkeep_time = 25;  // a server's disk, and its base
constexpr Time time_max = 200'000;
constexpr std::uint64_t tries_max = 20;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, hash_text("servers run")) {}
  std::uint64_t below(std::uint64_t bound) { return random_.below(count_++, bound); }

 private:
  RandomStream random_;
  std::uint64_t count_ = 0;
};

class Simulation {
 public:
  Simulation(const Plan& plan, bool traces)
      : plan_(plan),
        traces_(traces),
        script_(plan_),
        draw_(plan.seed),
        holders_{.servers = plan.server_num, .copies = plan.copies},
        servers_(holders_.count(), Server(plan_)),
        is_up_(plan.server_num),
        workers_(plan.worker_num) {}

  RunResult run();

 private:
  // ---- Time
  void at(Time delay, std::function<void()> act) {
    events_.push({now_ + delay, events_made_++, std::move(act)});
  }
  struct Event {
    Time when;
    std::uint64_t order;
    std::function<void()> act;
    bool operator<(const Event& other) const {
      return std::pair(other.when, other.order) < std::pair(when, order);
    }
  };

  // ---- Network
  void send(std::uint32_t worker, const ToServerMessages& messages);
  void send(std::uint32_t server, std::uint32_t worker, const ToWorker& message);
  void deliver(const std::function<void()>& act);

  // ---- Servers
  void start_process(std::uint32_t process);
  void stop_process(std::uint32_t process, Loss loss);
  void stop_server(std::uint32_t server, Loss loss);
  void open_server(std::uint32_t server);
  void look_for_rows(std::uint32_t server, std::uint64_t incarnation, std::uint64_t generation);
  void do_all(std::uint32_t server, const Actions& actions);
  void act(std::uint32_t server, const Append& append);
  void act(std::uint32_t server, const Apply& apply);
  void act(std::uint32_t server, const Reset& reset);
  void act(std::uint32_t server, const Answer& answer);
  void act(std::uint32_t server, const Preview& preview);
  void send_rows(std::uint32_t server, const Pull& pull, const std::set<std::uint64_t>& wanted, Rows rows);
  void act(std::uint32_t server, const Send& send);
  void keep_up(std::uint32_t server, std::uint64_t incarnation);
  void begin_copy(std::uint32_t server);
  void make_base(std::uint32_t server);

  // ---- Workers
  void start_worker(std::uint32_t worker);
  void stop_worker(std::uint32_t worker);
  void retry(std::uint32_t worker, std::uint64_t incarnation);
  void go_on(std::uint32_t worker);
  void end_with(const Error& failure);
  void ask(std::uint32_t worker, std::uint64_t step);
  void use(std::uint32_t worker, const std::vector<Rows>& rows);
  void keep_points(std::uint32_t worker);
  bool is_done(const Worker& worker) const;

  // ---- The job
  void begin_generation(std::uint64_t step);
  std::uint64_t step_of_survivors();
  void fail(const Fault& fault);
  void check_end();
  void broke(const std::string& promise) {
    trace("broken: " + promise);
    result_.broken.push_back(promise);
  }
  void trace(const std::string& what) {
    if (traces_) result_.trace.push_back(fmt::format("{:6} {}", now_, what));
  }

  const Plan plan_;
  const bool traces_;
  Script script_;
  Draw draw_;
  Time now_ = 0;
  std::uint64_t events_made_ = 0;
  std::priority_queue<Event> events_;
  Holders holders_;
  std::vector<Server> servers_;  // by holder
  std::vector<bool> is_up_;      // processes of servers
  std::vector<Worker> workers_;
  std::uint64_t generation_ = 0;
  std::uint64_t common_ = 0;    // the newest point that all workers have
  bool rows_are_lost_ = false;  // both holders of a share have lost their disks
  std::uint64_t tries_ = 0;     // to go on from the common point
  RunResult result_;
};

// ---- Network

void Simulation::deliver(const std::function<void()>& act) {
  if (draw_.below(100) < plan_.lost_of_100) return;
  const std::uint64_t copies = draw_.below(100) < plan_.doubled_of_100 ? 2 : 1;
  for (std::uint64_t i = 0; i < copies; ++i) at(1 + draw_.below(plan_.delay_max), act);
}

// What a worker's earlier process has sent still comes, as from one that was only stopped.
void Simulation::send(std::uint32_t worker, const ToServerMessages& messages) {
  for (const ToServerMessage& message : messages) {
    const std::uint64_t incarnation = servers_[message.holder].incarnation;
    deliver([this, worker, message, incarnation] {
      Server& server = servers_[message.holder];
      if (!server.machine || server.incarnation != incarnation) return;
      if (const auto* push = std::get_if<Push>(&message.message))
        result_.sent_again += push->step < server.machine->next(worker);
      do_all(message.holder, server.machine->receive(message.message));
    });
  }
}

void Simulation::send(std::uint32_t server, std::uint32_t worker, const ToWorker& message) {
  const std::uint64_t incarnation = workers_[worker].incarnation, of_server = servers_[server].incarnation;
  deliver([this, server, worker, message, incarnation, of_server] {
    Worker& to = workers_[worker];
    if (!to.machine || to.incarnation != incarnation || servers_[server].incarnation != of_server) return;
    send(worker, to.machine->receive(server, message));
    go_on(worker);
  });
}

// ---- Servers

// As the cluster does it: a server that begins without its rows begins in a new generation.
void Simulation::start_process(std::uint32_t process) {
  is_up_[process] = true;
  const auto is_here = [&](std::uint32_t holder) { return holders_.server(holder) == process; };
  bool lacks_rows = false;
  for (std::uint32_t index = 0; index < holders_.count(); ++index)
    lacks_rows = lacks_rows || (is_here(index) && servers_[index].has_lost_disk);
  if (lacks_rows) begin_generation(step_of_survivors());
  for (std::uint32_t index = 0; index < holders_.count(); ++index) {
    if (!is_here(index)) continue;
    Server& server = servers_[index];
    const std::uint64_t incarnation = ++server.incarnation;
    if (!server.has_lost_disk) {
      open_server(index);
      continue;
    }
    server.is_looking = true;
    server.disk = Disk(plan_);
    look_for_rows(index, incarnation, generation_);
  }
}

void Simulation::look_for_rows(std::uint32_t index, std::uint64_t incarnation, std::uint64_t generation) {
  Server& server = servers_[index];
  if (!server.is_looking || server.incarnation != incarnation) return;
  const Server& other = servers_[holders_.other(index)];
  if (other.is_looking) {
    rows_are_lost_ = true;
    trace(fmt::format("server {} learns that nobody has its rows", index));
    return open_server(index);
  }
  if (!other.machine || other.machine->generation() < generation)
    return at(1 + draw_.below(20), [=, this] { look_for_rows(index, incarnation, generation); });
  trace(fmt::format("server {} copies what server {} has", index, holders_.other(index)));
  at(1 + draw_.below(3 * plan_.delay_max), [this, index, incarnation, disk = other.disk] {
    Server& to = servers_[index];
    if (!to.is_looking || to.incarnation != incarnation) return;
    to.disk = disk;
    to.is_unkept = true;
    ++result_.fetched;
    open_server(index);
  });
}

void Simulation::open_server(std::uint32_t index) {
  Server& server = servers_[index];
  trace(fmt::format("server {} starts, base {}, {} records", index, server.disk.base.rows.applied(),
                    server.disk.log().size()));
  server.has_lost_disk = server.is_looking = false;
  ServerConfig config{
      .worker_num = plan_.worker_num, .staleness = plan_.staleness, .server = holders_.server(index)};
  if (plan_.copies > 1) config.other_holder = holders_.server(holders_.other(index));
  server.machine.emplace(config);
  server.rows = server.disk.base.rows;
  server.disk.synced = server.disk.last().size();
  server.appended = 0;
  auto actions = server.machine->restore(
      {.base = server.disk.base.position, .log = server.disk.log(), .is_kept = !server.is_unkept});
  if (!actions) return broke(actions.error().message);
  do_all(index, *actions);
  at(upkeep_time, [this, index, incarnation = server.incarnation] { keep_up(index, incarnation); });
}

void Simulation::stop_process(std::uint32_t process, Loss loss) {
  if (!is_up_[process]) return;
  is_up_[process] = false;
  for (std::uint32_t index = 0; index < holders_.count(); ++index)
    if (holders_.server(index) == process) stop_server(index, loss);
  at(1 + draw_.below(150), [this, process] { start_process(process); });
}

void Simulation::stop_server(std::uint32_t index, Loss loss) {
  Server& server = servers_[index];
  if (plan_.copies == 1) loss = std::min(loss, Loss::end_of_log);
  trace(fmt::format("server {} is killed{}", index,
                    loss == Loss::nothing      ? ""
                    : loss == Loss::end_of_log ? " with its host"
                                               : " with its disk"));
  server.machine.reset();
  server.copy.reset();
  server.changed.clear();
  server.is_looking = false;
  if (std::exchange(server.is_unkept, false) || loss == Loss::disk) server.has_lost_disk = true;
  Disk& disk = server.disk;
  if (loss == Loss::end_of_log)
    disk.last().resize(disk.synced + draw_.below(disk.last().size() - disk.synced + 1));
}

void Simulation::do_all(std::uint32_t server, const Actions& actions) {
  for (const Action& action : actions) std::visit([&](const auto& each) { act(server, each); }, action);
}

void Simulation::act(std::uint32_t server, const Append& append) {
  auto& copy = servers_[server].copy;
  if (const auto* begun = std::get_if<GenerationRecord>(&append.record); begun != nullptr && copy)
    if (*std::max_element(copy->position.begin(), copy->position.end()) > begun->begin) copy.reset();
  servers_[server].disk.last().push_back(append.record);
  ++servers_[server].appended;
}

const PushBody* push_in(const Body& body) { return static_cast<const PushBody*>(body.get()); }

void apply_to(RowTable& rows, const Apply& apply) {
  std::vector<const PushBody*> pushes;
  for (const Body& body : apply.bodies) pushes.push_back(push_in(body));
  rows.apply(apply.step, pushes);
}

void Simulation::act(std::uint32_t server, const Apply& apply) {
  RowTable& rows = servers_[server].rows;
  trace(fmt::format("server {} applies step {}", server, apply.step));
  apply_to(rows, apply);
  for (auto& [place, changed] : servers_[server].changed)
    for (const Body& body : apply.bodies)
      for (const auto& [row, value] : push_in(body)->contents) changed.insert(row);
  if (!rows.fault().empty()) broke(fmt::format("once: server {}: {}", server, rows.fault()));
}

void Simulation::act(std::uint32_t server, const Reset&) {
  trace(fmt::format("server {} goes back to its base {}", server, servers_[server].disk.base.rows.applied()));
  servers_[server].rows = servers_[server].disk.base.rows;
  ++result_.resets;
}

void Simulation::act(std::uint32_t index, const Answer& answer) {
  const Server& server = servers_[index];
  if (plan_.staleness && answer.applied != server.rows.applied())
    broke(fmt::format("truth: server {} says {} steps are applied, {} are", index, answer.applied,
                      server.rows.applied()));
  const auto& wanted = *static_cast<const std::set<std::uint64_t>*>(answer.pull.body.get());
  if (!answer.since) return send_rows(index, answer.pull, wanted, {.applied = answer.applied});
  const std::set<std::uint64_t>& changed = server.changed.at({answer.pull.worker, answer.pull.serial});
  std::set<std::uint64_t> both;
  std::ranges::set_intersection(wanted, changed, std::inserter(both, both.end()));
  ++result_.changes;
  send_rows(index, answer.pull, both,
            {.kind = Rows::Kind::changed, .applied = answer.applied, .since = *answer.since});
}

void Simulation::act(std::uint32_t server, const Preview& preview) {
  servers_[server].changed[{preview.pull.worker, preview.pull.serial}].clear();
  send_rows(server, preview.pull, *static_cast<const std::set<std::uint64_t>*>(preview.pull.body.get()),
            {.kind = Rows::Kind::early, .applied = preview.applied});
}

void Simulation::send_rows(std::uint32_t server, const Pull& pull, const std::set<std::uint64_t>& wanted,
                           Rows rows) {
  auto values = std::make_shared<RowsBody>();
  for (const std::uint64_t row : wanted) values->values[row] = servers_[server].rows.value(row);
  rows.generation = pull.generation;
  rows.serial = pull.serial;
  rows.body = values;
  send(server, pull.worker, rows);
}

void Simulation::act(std::uint32_t server, const Send& message) {
  send(server, message.worker, message.message);
}

void Simulation::keep_up(std::uint32_t index, std::uint64_t incarnation) {
  Server& server = servers_[index];
  if (!server.machine || server.incarnation != incarnation) return;
  at(upkeep_time, [this, index, incarnation] { keep_up(index, incarnation); });
  if (draw_.below(2) == 0) {
    server.disk.synced = server.disk.last().size();
    if (std::exchange(server.is_unkept, false)) do_all(index, server.machine->restored_kept());
    do_all(index, server.machine->log_kept(server.appended));
  }
  if (draw_.below(2) == 0) server.copy ? make_base(index) : begin_copy(index);
}

// All that was appended before is on the disk before anything of a later segment is.
void Simulation::begin_copy(std::uint32_t index) {
  Server& server = servers_[index];
  const std::uint64_t number = server.disk.segments.rbegin()->first + 1;
  server.disk.segments[number].carried = server.machine->carried();
  server.disk.synced = 0;
  server.copy.emplace(plan_);
  server.copy->position = server.machine->position();
  server.copy->segment = number;
  server.copy->rows = server.rows;
  trace(fmt::format("server {} copies its rows of step {}", index, server.rows.applied()));
}

void Simulation::make_base(std::uint32_t index) {
  Server& server = servers_[index];
  const Position& position = server.copy->position;
  if (*std::max_element(position.begin(), position.end()) > server.machine->common_point()) return;
  trace(fmt::format("server {} has a base of step {}", index, server.copy->rows.applied()));
  server.machine->base_moved(position);
  server.disk.base = *std::move(server.copy);
  server.copy.reset();
  ++result_.bases;
  if (draw_.below(2) == 0) return;  // it is killed before it removes the log before, perhaps
  std::erase_if(server.disk.segments,
                [&](const auto& each) { return each.first < server.disk.base.segment; });
}

// ---- Workers

void Simulation::start_worker(std::uint32_t index) {
  Worker& worker = workers_[index];
  worker.machine.emplace(WorkerConfig{.worker = index,
                                      .server_num = plan_.server_num,
                                      .copies = plan_.copies,
                                      .nothing = std::make_shared<std::set<std::uint64_t>>()});
  const std::uint64_t incarnation = ++worker.incarnation;
  at(1 + draw_.below(retry_time), [this, index, incarnation] { retry(index, incarnation); });
}

void Simulation::stop_worker(std::uint32_t index) {
  Worker& worker = workers_[index];
  if (!worker.machine) return;
  trace(fmt::format("worker {} is killed at step {}", index, worker.position()));
  worker.machine.reset();
  at(1 + draw_.below(150), [this, index] {
    const std::uint64_t step = step_of_survivors();
    start_worker(index);
    begin_generation(step);
  });
}

void Simulation::retry(std::uint32_t index, std::uint64_t incarnation) {
  Worker& worker = workers_[index];
  if (!worker.machine || worker.incarnation != incarnation) return;
  at(retry_time + draw_.below(retry_time), [this, index, incarnation] { retry(index, incarnation); });
  if (worker.machine->generation() == 0) return;
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder)
    if (worker.machine->awaits(holder)) send(index, worker.machine->retry(holder));
}

void Simulation::go_on(std::uint32_t index) {
  Worker& worker = workers_[index];
  if (worker.machine->failure()) {
    const Error failure = *worker.machine->failure();
    if (worker.machine->generation() != generation_) return;  // it will hear of the next one
    if (failure.code != Code::peer_lost || ++tries_ > tries_max) return end_with(failure);
    ++result_.gave_up;
    return begin_generation(common_);
  }
  keep_points(index);
  if (worker.machine->generation() == 0) return;
  if (worker.position() == plan_.steps) return send(index, worker.machine->leave());
  if (worker.pulled <= worker.position()) ask(index, worker.position());
  if (worker.pulled == worker.position() + 1 && worker.pulled < plan_.steps && draw_.below(3) == 0)
    ask(index, worker.pulled);  // ahead of time
  if (const auto rows = worker.machine->take_rows(worker.position())) {
    use(index, *rows);
    go_on(index);
  }
}

// Only where both holders of a share have lost what they had, and the error says so.
void Simulation::end_with(const Error& failure) {
  if (!rows_are_lost_ || failure.message.find("the same rows") == std::string::npos)
    return broke(fmt::format("refused: {}", failure.message));
  trace(failure.message);
  ++result_.told_lost;
}

void Simulation::ask(std::uint32_t index, std::uint64_t step) {
  Worker& worker = workers_[index];
  worker.pulled = step + 1;
  std::vector<std::set<std::uint64_t>> asked(plan_.server_num);
  for (const std::uint64_t row : script_.rows(index, step)) asked[script_.owner(row)].insert(row);
  std::vector<Body> bodies;
  for (auto& rows : asked) bodies.push_back(std::make_shared<std::set<std::uint64_t>>(std::move(rows)));
  const bool is_ahead = step > worker.position();
  send(index, is_ahead ? worker.machine->pull_ahead(step, std::move(bodies))
                       : worker.machine->pull(step, std::move(bodies)));
}

void Simulation::use(std::uint32_t index, const std::vector<Rows>& all) {
  Worker& worker = workers_[index];
  const std::uint64_t step = worker.position();
  Contents values;
  for (const Rows& rows : all) {
    if (plan_.staleness && rows.applied + *plan_.staleness < step)
      broke(fmt::format("staleness: step {} of worker {} got rows of step {}", step, index, rows.applied));
    if (plan_.staleness == Staleness(0) && rows.applied != step)
      broke(fmt::format("synchronous: step {} of worker {} got rows of step {}", step, index, rows.applied));
    if (rows.early != nullptr)
      for (const auto& value : static_cast<const RowsBody*>(rows.early.get())->values) values.insert(value);
    for (const auto& [row, value] : static_cast<const RowsBody*>(rows.body.get())->values)
      values[row] = value;
  }
  const Contents contents = script_.contents(index, step, worker.states.back(), values);
  worker.pushed.resize(step);
  worker.pushed.push_back(contents);
  worker.states.push_back(script_.next_state(worker.states.back(), values));
  std::vector<PushBody> parts(plan_.server_num, PushBody{.worker = index, .step = step, .contents = {}});
  for (const auto& content : contents) parts[script_.owner(content.first)].contents.insert(content);
  std::vector<Body> bodies;
  for (PushBody& part : parts) bodies.push_back(std::make_shared<PushBody>(std::move(part)));
  trace(fmt::format("worker {} pushes step {} in generation {}", index, step, worker.machine->generation()));
  send(index, worker.machine->push(std::move(bodies)));
}

// A point counts once every server has kept the pushes before it.
void Simulation::keep_points(std::uint32_t index) {
  Worker& worker = workers_[index];
  if (worker.machine->generation() != generation_) return;
  const std::uint64_t kept = std::min(worker.machine->kept(), worker.position());
  worker.points.insert(kept / plan_.point_every * plan_.point_every);
  std::uint64_t least = plan_.steps;
  for (const Worker& each : workers_) least = std::min(least, *each.points.rbegin());
  if (least > common_) trace(fmt::format("all have a point of step {}", least));
  common_ = std::max(common_, least);
  if (draw_.below(4) == 0) send(index, worker.machine->set_common_point(common_));
}

// A call of a worker's does not return before every server has answered its hello.
bool Simulation::is_done(const Worker& worker) const {
  return worker.machine && worker.machine->is_welcome() && !worker.machine->failure() &&
         worker.machine->generation() == generation_ && worker.position() == plan_.steps &&
         worker.machine->kept() == plan_.steps;
}

// ---- The job

// Where those who live may go on together: not behind what a lost worker is known to have pushed.
std::uint64_t Simulation::step_of_survivors() {
  std::uint64_t step = plan_.steps;
  bool anybody = false;
  for (const Worker& worker : workers_) {
    const bool lives = worker.machine && worker.machine->generation() > 0;
    anybody = anybody || lives;
    const std::uint64_t less = lives ? 0 : draw_.below(2);
    step = std::min(step, worker.position() - std::min(less, worker.position()));
  }
  return anybody ? std::max(step, common_) : common_;
}

void Simulation::begin_generation(std::uint64_t step) {
  const std::uint64_t generation = ++generation_;
  ++result_.generations;
  trace(fmt::format("generation {} begins at step {}", generation, step));
  for (Worker& worker : workers_) worker.points.erase(worker.points.upper_bound(step), worker.points.end());
  for (std::uint32_t index = 0; index < plan_.worker_num; ++index) {
    const std::uint64_t incarnation = workers_[index].incarnation;
    at(draw_.below(40), [this, index, incarnation, generation, step] {
      Worker& worker = workers_[index];
      if (!worker.machine || worker.incarnation != incarnation || generation != generation_) return;
      worker.states.resize(step + 1);
      worker.pulled = step;
      send(index, worker.machine->begin(generation, step, 0));
      go_on(index);
    });
  }
}

void Simulation::fail(const Fault& fault) {
  const auto process = static_cast<std::uint32_t>(fault.what % plan_.server_num);
  switch (fault.kind) {
    case FaultKind::kills_server:
      return stop_process(process, Loss::nothing);
    case FaultKind::loses_server_host:
      return stop_process(process, Loss::end_of_log);
    case FaultKind::loses_two_disks:
      stop_process((process + 1) % plan_.server_num, Loss::disk);
      [[fallthrough]];
    case FaultKind::loses_disk:
      return stop_process(process, Loss::disk);
    case FaultKind::kills_worker:
      return stop_worker(static_cast<std::uint32_t>(fault.what % plan_.worker_num));
    case FaultKind::kills_all:
    case FaultKind::loses_all_hosts:
      for (std::uint32_t i = 0; i < plan_.server_num; ++i)
        stop_process(i, fault.kind == FaultKind::loses_all_hosts ? Loss::end_of_log : Loss::nothing);
      for (std::uint32_t i = 0; i < plan_.worker_num; ++i) stop_worker(i);
  }
}

// What all workers have pushed last, applied once each and in order, is what the servers have.
void Simulation::check_end() {
  RowTable expected(plan_);
  for (std::uint64_t step = 0; step < plan_.steps; ++step) {
    std::vector<PushBody> pushes;
    for (std::uint32_t worker = 0; worker < plan_.worker_num; ++worker)
      pushes.push_back({worker, step, workers_[worker].pushed[step]});
    std::vector<const PushBody*> all;
    for (const PushBody& push : pushes) all.push_back(&push);
    if (plan_.staleness)
      expected.apply(step, all);
    else
      for (const PushBody* push : all) expected.apply(step, {push});
  }
  if (plan_.staleness == Staleness(0) && expected.values() != undisturbed(plan_).values())
    broke("bits: the workers have pushed something else than in an undisturbed run");
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder)
    for (std::uint64_t row = 0; row < row_num; ++row)
      if (script_.owner(row) == holders_.share(holder) &&
          servers_[holder].rows.value(row) != expected.value(row))
        broke(fmt::format("lost or doubled: row {} of holder {} is not what was pushed to it", row, holder));
}

RunResult Simulation::run() {
  for (std::uint32_t index = 0; index < plan_.worker_num; ++index)
    workers_[index].states = {script_.first_state(index)};
  for (std::uint32_t index = 0; index < plan_.server_num; ++index) start_process(index);
  for (std::uint32_t index = 0; index < plan_.worker_num; ++index) start_worker(index);
  begin_generation(0);
  for (const Fault& fault : plan_.faults) at(fault.when, [this, fault] { fail(fault); });
  const auto all_done = [this] {
    return std::all_of(workers_.begin(), workers_.end(),
                       [this](const Worker& each) { return is_done(each); }) &&
           std::all_of(servers_.begin(), servers_.end(),
                       [](const Server& each) { return each.machine.has_value(); });
  };
  while (!events_.empty() && result_.broken.empty() && result_.told_lost == 0 && !all_done()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.when;
    if (now_ > time_max) broke("end: the job stands still");
    event.act();
  }
  if (result_.broken.empty() && result_.told_lost == 0) check_end();
  return std::move(result_);
}

}  // namespace

RunResult run(const Plan& plan, bool traces) { return Simulation(plan, traces).run(); }

}  // namespace muster::server::sim
