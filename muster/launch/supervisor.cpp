#include "muster/launch/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "muster/checkpoint/checkpoint.h"
#include "muster/cluster/cluster.h"
#include "muster/launch/dashboard/job_server.h"
#include "muster/launch/failure_report.h"
#include "muster/launch/process.h"
#include "muster/launch/run_folder.h"
#include "muster/launch/runs/run_record.h"
#include "muster/launch/supervision.h"
#include "muster/launch/verdict.h"

namespace muster::launch {
namespace {

constexpr Duration agents_timeout = std::chrono::seconds(3);
constexpr Duration early_end_limit = std::chrono::seconds(2);
constexpr Duration released_grace = std::chrono::seconds(2);
constexpr int flush_timeout_ms = 5000;
constexpr int flush_timeout_orphan_ms = 200;  // there may be no reader
constexpr int exit_code_cannot_start = 127;   // as a shell reports it

}  // namespace

// ---- Beginning --------------------------------------------------------------------------------------------

Result<> Supervisor::take_over_signals() {
  sigset_t handled;
  ::sigemptyset(&handled);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) ::sigaddset(&handled, number);
  ::sigprocmask(SIG_BLOCK, &handled, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGTTOU, SIG_IGN);  // lines may be written while another group has the terminal
  signals_ = net::Descriptor(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return fail_errno("cannot watch for signals", errno);
  return adopt_orphans();
}

Result<> Supervisor::prepare() {
  MUSTER_TRY_VOID(take_over_signals());
  crews_.push_back(&local_);
  for (const HostWork& host : hosts_) {
    Crew* crew = host.agent ? host.agent.get() : &local_;
    if (host.agent) crews_.push_back(crew);
    for (const ProcessSpec& spec : host.spec.processes) {
      MUSTER_TRY_VOID(outputs_.add(spec));
      processes_.push_back(
          {.spec = &spec,
           .crew = crew,
           .host = hosts_.size() > 1 ? host.name : options_.host,
           .restarts = Restarts(options_.restarts_max, options_.restart_delay, options_.restart_delay_max)});
    }
  }
  for (Crew* crew : crews_) crew->set_listener(*this);
  return {};
}

void Supervisor::start_all() {
  for (const HostWork& host : hosts_)
    if (!host.spec.files.empty()) (host.agent ? host.agent.get() : &local_)->make_files(host.spec.files);
  for (const bool is_service : {true, false})
    for (Running& process : processes_)
      if (process.is_service() == is_service && start_failure_.empty())
        process.crew->start(index_of(process), spec_of_group(*process.spec));
}

void Supervisor::start_watch() {
  for (JobServer* const server : options_.servers)
    if (!processes_.empty())
      if (const auto served = server->serve_beside(*processes_.front().spec, options_.token, options_.clock);
          !served)
        say(fmt::format("the job is not shown, or its history not kept: {}", served.error().message));
  if (!options_.asks_scheduler || !console_.is_terminal() || processes_.empty()) return;
  if (auto watch = StateWatch::start(*processes_.front().spec, options_.token, options_.clock))
    watch_ = std::move(*watch);
}

void Supervisor::on_start_failure(std::size_t index, const Error& error) {
  Running& process = processes_[index];
  outputs_.release(index);  // what an import has written
  if (process.restarts.restarts() == 0 && group_restarts_ == 0) {
    if (start_failure_.empty())
      start_failure_ = process.host.empty() || process.crew == &local_
                           ? error.message
                           : fmt::format("host {}: {}", process.host, error.message);
    return;
  }
  say(fmt::format("{} cannot be started again: {}", process.spec->label, error.message));
  process.wait_status = process.last_wait_status;
  note_failure(process);
}

// ---- The loop ---------------------------------------------------------------------------------------------

int Supervisor::run() {
  if (const auto prepared = prepare(); !prepared) {
    start_failure_ = prepared.error().message;
    return finish();
  }
  start_watch();
  show_state();
  start_all();
  while (is_running() && !keeper_is_gone_ && !was_killed_ && start_failure_.empty()) {
    show_state();
    wait(phase_ == Phase::running ? std::nullopt : std::optional(deadline_));
    outputs_.release_due(options_.clock.now());
    restart_what_is_asked_for();
    restart_what_is_due();
    restart_group_when_ended();
    end_what_came_too_late();
    tell_of_early_ends();
    advance();
  }
  tell_other_hosts_of_early_ends();
  return finish();
}

bool Supervisor::has_own_work_left() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const Running& p) { return !p.is_service() && !p.is_over(); });
}

// Other hosts may need the services of this one: where there are such, work is over when all say so.
bool Supervisor::has_work_left() const {
  return has_own_work_left() || (options_.lease != nullptr && !released_ && phase_ == Phase::running);
}

bool Supervisor::is_running() const {
  return has_work_left() || phase_ == Phase::regrouping ||
         std::any_of(processes_.begin(), processes_.end(), [](const Running& p) { return !p.is_over(); });
}

// What follows from the time that has passed, and from work that has ended.
void Supervisor::advance() {
  if (options_.lease != nullptr && phase_ == Phase::running && !has_own_work_left())
    options_.lease->work_ended(0);
  if (phase_ == Phase::regrouping) {
    if (options_.clock.now() >= deadline_) {
      signal_all(SIGKILL, true);
      deadline_ = options_.clock.now() + options_.grace;
    }
    return;
  }
  if (phase_ < Phase::closing && !has_work_left()) {
    enter(Phase::closing, 0);
    signal_all(SIGTERM, true);
    return;
  }
  end_what_was_spared();
  if (phase_ == Phase::running || options_.clock.now() < deadline_) return;
  if (phase_ == Phase::settling) {
    say("asking the others to end");
    enter(Phase::ending, SIGTERM);
  } else if (phase_ == Phase::killing) {
    was_killed_ = true;
  } else {
    enter(Phase::killing, SIGKILL);
  }
}

void Supervisor::wait(std::optional<TimePoint> until) {
  const int lease_fd = options_.lease != nullptr && !released_ ? options_.lease->fd() : -1;
  std::vector<pollfd> polled = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                {.fd = options_.keeper_fd, .events = POLLIN, .revents = 0},
                                {.fd = lease_fd, .events = POLLIN, .revents = 0},
                                {.fd = watch_ ? watch_->fd() : -1, .events = POLLIN, .revents = 0}};
  const std::size_t console_at = polled.size();
  for (const Stream stream : {Stream::out, Stream::error}) {
    const int fd = console_.is_waiting(stream) ? console_.fd(stream) : -1;
    polled.push_back({.fd = fd, .events = POLLOUT, .revents = 0});
  }
  std::vector<std::size_t> crew_at;
  for (const Crew* crew : crews_) {
    crew_at.push_back(polled.size());
    crew->add_polled(polled, !console_.is_full());
    if (const auto time = crew->wake_at()) until = until ? std::min(*until, *time) : *time;
  }
  crew_at.push_back(polled.size());
  for (const JobServer* const server : options_.servers)
    polled.push_back({.fd = server->fd_beside(), .events = POLLIN, .revents = 0});
  if (const auto due = outputs_.due()) until = until ? std::min(*until, *due) : *due;
  if (phase_ == Phase::running && late_end_at_)
    until = until ? std::min(*until, *late_end_at_) : *late_end_at_;
  for (const Running& process : processes_)
    if (process.restart_at) until = until ? std::min(*until, *process.restart_at) : *process.restart_at;

  if (phase_ == Phase::running && early_ends_.due())
    until = until ? std::min(*until, *early_ends_.due()) : *early_ends_.due();

  int timeout_ms = -1;
  if (until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - options_.clock.now());
    timeout_ms = static_cast<int>(std::max<std::int64_t>(0, left.count()));
  }
  if (::poll(polled.data(), polled.size(), timeout_ms) < 0) return;  // interrupted: look again

  for (const Stream stream : {Stream::out, Stream::error})
    if (polled[console_at + static_cast<std::size_t>(stream)].revents != 0) console_.write_some(stream);
  for (std::size_t i = 0; i < crews_.size(); ++i)
    crews_[i]->take(std::span(polled).subspan(crew_at[i], crew_at[i + 1] - crew_at[i]));
  if (polled[0].revents != 0) take_signals();
  if (polled[1].revents != 0) keeper_is_gone_ = true;
  if (polled[2].revents != 0) take_lease();
  if (polled[3].revents != 0) watch_->take();
}

void Supervisor::take_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) continue;
    if (interrupted_by_ == 0) {
      interrupted_by_ = number;
      enter(Phase::ending, number);
    } else {
      enter(Phase::killing, SIGKILL);
    }
  }
  int status = 0;
  pid_t pid = 0;
  rusage usage{};
  while ((pid = ::wait4(-1, &status, WNOHANG, &usage)) > 0) {  // what belongs to no crew is an adopted orphan
    memory_peak_kib_ = {pid, usage.ru_maxrss};
    std::any_of(crews_.begin(), crews_.end(), [&](Crew* crew) { return crew->take_child_end(pid, status); });
  }
}

void Supervisor::take_lease() {
  released_ = options_.lease->take();
  if (!released_ || phase_ > Phase::settling || !has_own_work_left()) return;
  enter(Phase::ending, SIGTERM);
  deadline_ = std::min(deadline_, options_.clock.now() + released_grace);
}

void Supervisor::enter(Phase phase, int signal_number) {
  phase_ = phase;
  for (Running& process : processes_) process.restart_at.reset();  // the job ends: no process comes back
  deadline_ = options_.clock.now() + (phase == Phase::settling ? options_.settle : options_.grace);
  if (signal_number != 0) signal_all(signal_number, signal_number == SIGKILL);
}

void Supervisor::signal_all(int number, bool is_for_services) {
  const bool spares_scheduler = number == SIGTERM && ends_in_order();
  for (Running& process : processes_) {
    if (process.has_ended() || (process.is_service() && !is_for_services)) continue;
    if (spares_scheduler && process.is_scheduler() && !catches(process.pid, SIGTERM)) continue;
    process.crew->signal(index_of(process), number);
    process.was_asked_to_end = true;
  }
}

// This process was asked to end the job, and a worker has a handler for that: it goes on to the end of its
// step and saves (OnRequestExit), for which the workers need their scheduler.
bool Supervisor::ends_in_order() const {
  return interrupted_by_ == SIGTERM && phase_ == Phase::ending &&
         std::any_of(processes_.begin(), processes_.end(), [&](const Running& process) {
           return !process.is_scheduler() && !process.is_service() && !process.has_ended() &&
                  process.crew == &local_ && catches(process.pid, SIGTERM);
         });
}

// A scheduler ends by itself behind workers that end well, and else is asked to.
void Supervisor::end_what_was_spared() {
  if (interrupted_by_ != SIGTERM || phase_ != Phase::ending) return;
  const bool has_failed = std::any_of(processes_.begin(), processes_.end(), [](const Running& process) {
    return process.wait_status && exit_code_of(*process.wait_status) != 0;
  });
  for (Running& process : processes_) {
    if (!has_failed || !process.is_scheduler() || process.has_ended() || process.was_asked_to_end) continue;
    process.crew->signal(index_of(process), SIGTERM);
    process.was_asked_to_end = true;
  }
}

// ---- Ends of processes ------------------------------------------------------------------------------------

void Supervisor::on_end(std::size_t index, int wait_status) {
  Running& process = processes_[index];
  process.wait_status = wait_status;
  outputs_.finish(index, options_.clock.now());
  if (phase_ == Phase::regrouping) {
    outputs_.release(index);
    return;
  }
  if (process.is_scheduler() && exit_code_of(wait_status) == 0) note_end_of_job();
  if (process.is_service()) {
    if (phase_ == Phase::running && exit_code_of(wait_status) != 0 && has_work_left() &&
        !plan_group_restart(process))
      note_failure(process);
  } else if (exit_code_of(wait_status) != 0 && is_behind_the_end(process)) {
    tell_of_end_behind_the_end(process);
  } else if (exit_code_of(wait_status) != 0 && !plan_restart(process) && !plan_group_restart(process)) {
    note_failure(process);
  } else if (exit_code_of(wait_status) == 0 && options_.asks_scheduler) {
    early_ends_.note(*process.spec);
  }
  const bool is_reported = !failed_.empty() || interrupted_by_ != 0;
  if (process.restart_at || exit_code_of(wait_status) == 0 || !is_reported) outputs_.release(index);
}

// Once for each process that dies so.
void Supervisor::hint_at_memory(const Running& process) {
  if (!WIFSIGNALED(*process.wait_status) || WTERMSIG(*process.wait_status) != SIGKILL) return;
  const bool is_here = process.crew == &local_;
  const std::string hint = memory_hint(place_of(process.spec->label, process.host),
                                       is_here ? memory_events_.has_killed() : std::nullopt,
                                       process.pid == memory_peak_kib_.first ? memory_peak_kib_.second : 0);
  if (!hint.empty()) say(hint);
}

void Supervisor::note(const std::string& kind, const Running& process, const std::string& text) {
  if (options_.record != nullptr) options_.record->note(kind, process.spec->label, text);
}

void Supervisor::note_failure(Running& process) {
  if (phase_ == Phase::running || phase_ == Phase::settling) {
    failed_.push_back(index_of(process));
    const std::string& refusal = process.restarts.refusal();
    const std::string text = fmt::format("{} (pid {}) {}{}{}", place_of(process.spec->label, process.host),
                                         process.pid, describe_exit(*process.wait_status),
                                         refusal.empty() ? "" : "; it is not started again: ", refusal);
    say(text);
    note("failed", process, text);
    hint_at_memory(process);
  }
  if (phase_ == Phase::running) enter(Phase::settling, 0);
}

std::string Supervisor::host_of(const Crew& crew) const {
  const auto found = std::find_if(hosts_.begin(), hosts_.end(),
                                  [&](const HostWork& host) { return host.agent.get() == &crew; });
  return found == hosts_.end() ? options_.host : found->name;
}

void Supervisor::on_loss(const Crew& crew, const std::string& reason) {
  const bool is_early = phase_ <= Phase::settling;
  const std::string host = host_of(crew);
  if (is_early && std::none_of(processes_.begin(), processes_.end(),
                               [](const Running& process) { return process.pid >= 0; }))
    start_failure_ = host.empty() ? reason : fmt::format("host {}: {}", host, reason);
  else if (is_early)
    say(fmt::format("host {} is lost: {}", host, reason));
  if (is_early && options_.record != nullptr)
    options_.record->note("failed", "", fmt::format("host {} is lost: {}", host, reason));
  for (Running& process : processes_) {
    if (process.crew != &crew || process.has_ended()) continue;
    process.loss = reason;
    process.restart_at.reset();
    outputs_.finish(index_of(process), options_.clock.now());
    if (is_early) failed_.push_back(index_of(process));
  }
  if (phase_ < Phase::settling && !failed_.empty()) enter(Phase::settling, 0);
}

void Supervisor::on_note(const Crew& crew, std::string_view line) {
  const std::string host = &crew == &local_ && hosts_.size() == 1 ? "" : host_of(crew);
  say(host.empty() ? std::string(line) : fmt::format("host {}: {}", host, line));
}

// ---- Starting again ---------------------------------------------------------------------------------------

// A scheduler whose workers have all left has nothing to come back for.
void Supervisor::tell_of_early_ends() {
  if (phase_ == Phase::running && early_ends_.due() && options_.clock.now() >= *early_ends_.due())
    early_ends_.tell();
}

// The scheduler of another host may wait for workers of this one. It is not there yet, or not any more, where
// all of it ended within a moment.
void Supervisor::tell_other_hosts_of_early_ends() {
  const bool has_scheduler = std::any_of(processes_.begin(), processes_.end(), [](const Running& process) {
    return process.spec->role == "scheduler";
  });
  if (has_scheduler || !failed_.empty() || interrupted_by_ != 0 || keeper_is_gone_) return;
  early_ends_.tell_before_end(early_end_limit);
}

// ---- The end ----------------------------------------------------------------------------------------------

void Supervisor::show_state() {
  if (console_.is_terminal()) console_.state("muster: " + state());
}

std::string Supervisor::state() const {
  if (phase_ == Phase::regrouping) return "all processes are ended, and started again";
  if (phase_ != Phase::running) return failed_.empty() ? "ending" : "ending, since a process failed";
  const auto returning = std::find_if(processes_.begin(), processes_.end(),
                                      [](const Running& process) { return process.restart_at; });
  if (returning != processes_.end())
    return fmt::format("recovering, {} is started again", returning->spec->label);
  const auto started = std::count_if(processes_.begin(), processes_.end(),
                                     [](const Running& process) { return process.pid >= 0; });
  if (static_cast<std::size_t>(started) < processes_.size())
    return fmt::format("starting, {} of {} processes", started, processes_.size());
  if (watch_) return watch_->text().empty() ? "starting" : watch_->text();
  return "running";
}

// Nothing that descends from this process or from an agent is left.
void Supervisor::end_all() {
  const TimePoint deadline = options_.clock.now() + agents_timeout;
  const auto are_ended = [&] {
    return std::all_of(crews_.begin(), crews_.end(), [](const Crew* crew) { return crew->has_ended(); });
  };
  if (!keeper_is_gone_)
    for (Crew* crew : crews_) crew->begin_end();
  while (!keeper_is_gone_ && !are_ended() && options_.clock.now() < deadline) wait(deadline);
  for (const HostWork& host : hosts_)
    if (host.agent && !host.agent->has_ended() && !keeper_is_gone_)
      say(fmt::format("host {} does not answer; what runs there ends when it notices", host.name));
  std::vector<pid_t> pages;  // they have yet to hear how the job has ended
  for (const JobServer* const server : options_.servers) pages.push_back(server->process_beside());
  if (options_.record != nullptr) pages.push_back(options_.record->repository_process());
  if (!kill_descendants(kill_timeout, options_.clock, pages))
    say("some processes do not end even when killed");
}

int Supervisor::finish() {
  phase_ = Phase::killing;  // whatever ends from here on ends because of this
  end_all();
  local_.drain();
  for (const Running& process : processes_) outputs_.finish(index_of(process), options_.clock.now());
  remove_run_folder(options_.run_folder);
  console_.state({});
  const int code = report();
  for (JobServer* const server : options_.servers) server->end_beside(code);
  if (options_.record != nullptr) options_.record->end(code, interrupted_by_);
  if (options_.lease != nullptr) options_.lease->work_ended(code);
  console_.flush(keeper_is_gone_ ? flush_timeout_orphan_ms : flush_timeout_ms);
  return code;
}

int Supervisor::report() {
  if (keeper_is_gone_) return 128 + SIGKILL;
  if (!start_failure_.empty()) {
    say(start_failure_);
    return exit_code_cannot_start;
  }
  const bool have_ended_well = std::all_of(processes_.begin(), processes_.end(), [](const Running& process) {
    return process.is_service() || (process.wait_status && exit_code_of(*process.wait_status) == 0);
  });
  if (interrupted_by_ == SIGTERM && have_ended_well) {
    say("ended as it was asked to (SIGTERM): all processes exited with code 0");
    return 0;
  }
  if (interrupted_by_ != 0) {
    show_held_but_interrupts();
    say(fmt::format("ended by signal {} ({})", interrupted_by_, ::strsignal(interrupted_by_)));
    return 128 + interrupted_by_;
  }
  if (failed_.empty() && released_) {
    if (!released_->reason.empty()) say(released_->reason);
    return released_->exit_code;
  }
  if (failed_.empty()) {
    const double seconds = cluster::in_seconds(options_.clock.now() - begin_);
    if (console_.is_terminal()) say(fmt::format("done after {:.3g} s", seconds));
    return 0;
  }
  return report_failure();
}

int Supervisor::report_failure() {
  std::vector<ProcessEnd> ends;
  for (const Running& process : processes_)
    ends.push_back({.label = process.spec->label,
                    .role = process.spec->role,
                    .is_service = process.is_service(),
                    .host = process.host,
                    .wait_status = process.wait_status,
                    .was_asked_to_end = process.was_asked_to_end,
                    .loss = process.loss,
                    .last_lines = outputs_.last_lines(index_of(process)),
                    .follows_another = other_failure(outputs_.held(index_of(process))).has_value()});
  return launch::report_failure(ends, failed_, outputs_, console_);
}

// Everybody knows where Ctrl-C hit, or asks the logs; what else an end brought up is to be seen.
void Supervisor::show_held_but_interrupts() {
  for (const Running& process : processes_)
    if (!is_of_interrupt(outputs_.held(index_of(process)))) outputs_.release(index_of(process));
}

int supervise(std::vector<HostWork> hosts, const SupervisorOptions& options) {
  return Supervisor(hosts, options).run();
}

int supervise(const LaunchSpec& spec, const SupervisorOptions& options) {
  std::vector<HostWork> hosts(1);
  hosts.front().spec = spec;
  return supervise(std::move(hosts), options);
}

}  // namespace muster::launch
