#include "muster/launch/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <optional>

#include "muster/checkpoint/checkpoint.h"
#include "muster/cluster/cluster.h"
#include "muster/launch/console.h"
#include "muster/launch/lines.h"
#include "muster/launch/process.h"
#include "muster/launch/restarts.h"

namespace muster::launch {
namespace {

constexpr Duration kill_timeout = std::chrono::seconds(5);
constexpr int flush_timeout_ms = 5000;
constexpr std::size_t last_lines_max = 30;
constexpr int exit_code_cannot_start = 127;  // as a shell reports it

// One of the two streams of a process.
struct Output {
  net::Descriptor fd = {};
  LineBuffer lines = {};
  std::deque<std::string> last = {};
};

struct Running {
  const ProcessSpec* spec = nullptr;
  pid_t pid = -1;
  std::array<Output, 2> outputs = {};  // by Console::Stream
  net::Descriptor log = {};
  std::optional<int> wait_status = {};
  bool was_asked_to_end = false;
  Restarts restarts;
  std::optional<TimePoint> restart_at = {};  // it has ended, and will be started again
};

// Lower: more likely the cause. A process that lost a peer ended because of another one; a scheduler that
// fails mostly reports what a worker did; a signal hits from outside.
int rank_as_cause(const Running& process) {
  const int status = *process.wait_status;
  if (WIFSIGNALED(status)) return 0;
  if (WEXITSTATUS(status) == cluster::exit_code_peer_lost) return 3;
  return process.spec->role == "scheduler" ? 2 : 1;
}

class Supervisor {
 public:
  Supervisor(const LaunchSpec& spec, const SupervisorOptions& options)
      : spec_(spec), options_(options), console_(STDOUT_FILENO, STDERR_FILENO) {}

  int run();

 private:
  enum class Phase { running, settling, ending, killing };

  Result<> start();
  Result<> start_one(const ProcessSpec& spec);
  Result<> start_process_of(Running& process, int log_flags);
  void wait();
  void take_signals();
  void take_ended_children();
  void note_end(Running& process);
  void note_failure(Running& process);
  bool plan_restart(Running& process);
  void restart_what_is_due();
  void restart(Running& process);
  bool has_work_left(const Running& process) const;
  void take_output(Running& process, Console::Stream stream);
  void set_live(const Running* process);
  void drain(Running& process);
  void show(Running& process, Console::Stream stream, std::string_view line);
  void enter(Phase phase, int signal_number);
  void signal_all(int number);
  int finish();
  int report();
  std::string verdicts() const;

  void say(std::string_view text) { console_.line(Console::error, {}, fmt::format("muster: {}", text)); }
  bool is_running() const {
    return std::any_of(processes_.begin(), processes_.end(),
                       [](const Running& p) { return !p.wait_status || p.restart_at; });
  }

  const LaunchSpec& spec_;
  const SupervisorOptions& options_;
  Console console_;
  net::Descriptor signals_;
  std::vector<Running> processes_;
  std::vector<std::size_t> failed_;  // in the order in which they ended, until the others are asked to end
  const Running* live_owner_ = nullptr;
  Phase phase_ = Phase::running;
  TimePoint deadline_{};
  int interrupted_by_ = 0;
  bool keeper_is_gone_ = false;
};

Result<> Supervisor::start() {
  sigset_t handled;
  ::sigemptyset(&handled);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) ::sigaddset(&handled, number);
  ::sigprocmask(SIG_BLOCK, &handled, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGTTOU, SIG_IGN);  // lines may be written while another group has the terminal
  signals_ = net::Descriptor(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return fail_errno("cannot watch for signals", errno);
  MUSTER_TRY_VOID(adopt_orphans());
  processes_.reserve(spec_.processes.size());
  for (const ProcessSpec& spec : spec_.processes) MUSTER_TRY_VOID(start_one(spec));
  return {};
}

Result<> Supervisor::start_one(const ProcessSpec& spec) {
  Running process{
      .spec = &spec,
      .restarts = Restarts(options_.restarts_max, options_.restart_delay, options_.restart_delay_max)};
  MUSTER_TRY_VOID(start_process_of(process, O_TRUNC));
  processes_.push_back(std::move(process));
  return {};
}

Result<> Supervisor::start_process_of(Running& process, int log_flags) {
  const std::string path = options_.log_folder + '/' + process.spec->log_name;
  net::Descriptor log(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | log_flags, 0666));
  if (!log) return fail_errno(fmt::format("cannot write '{}'", path), errno);
  MUSTER_TRY(ChildProcess child, start_process(*process.spec));
  process.pid = child.pid;
  process.log = std::move(log);
  process.outputs[Console::out] = {.fd = std::move(child.out)};
  process.outputs[Console::error] = {.fd = std::move(child.error)};
  process.wait_status.reset();
  process.restart_at.reset();
  return {};
}

int Supervisor::run() {
  if (const auto started = start(); !started) {
    say(started.error().message);
    kill_descendants(kill_timeout);
    console_.flush(flush_timeout_ms);
    return exit_code_cannot_start;
  }
  while (is_running() && !keeper_is_gone_) {
    wait();
    restart_what_is_due();
    if (phase_ == Phase::running || real_clock().now() < deadline_) continue;
    if (phase_ == Phase::settling) {
      say("asking the others to end");
      enter(Phase::ending, SIGTERM);
    } else {
      enter(Phase::killing, SIGKILL);
    }
  }
  return finish();
}

void Supervisor::wait() {
  std::vector<pollfd> polled = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                {.fd = options_.keeper_fd, .events = POLLIN, .revents = 0}};
  for (const Console::Stream stream : {Console::out, Console::error}) {
    const int fd = console_.is_waiting(stream) ? console_.fd(stream) : -1;
    polled.push_back({.fd = fd, .events = POLLOUT, .revents = 0});
  }
  const std::size_t first_output = polled.size();
  for (const Running& process : processes_)
    for (const Output& output : process.outputs)
      polled.push_back({.fd = console_.is_full() ? -1 : output.fd.get(), .events = POLLIN, .revents = 0});

  int timeout_ms = -1;
  const auto wake_at = [&](TimePoint time) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - real_clock().now());
    const int left_ms = static_cast<int>(std::max<std::int64_t>(0, left.count()));
    timeout_ms = timeout_ms < 0 ? left_ms : std::min(timeout_ms, left_ms);
  };
  if (phase_ != Phase::running) wake_at(deadline_);
  for (const Running& process : processes_)
    if (process.restart_at) wake_at(*process.restart_at);
  if (::poll(polled.data(), polled.size(), timeout_ms) < 0) return;  // interrupted: look again

  for (const Console::Stream stream : {Console::out, Console::error})
    if (polled[2 + stream].revents != 0) console_.write_some(stream);
  for (std::size_t i = 0; i < processes_.size(); ++i)
    for (const Console::Stream stream : {Console::out, Console::error})
      if (polled[first_output + 2 * i + stream].revents != 0) take_output(processes_[i], stream);
  if (polled[0].revents != 0) take_signals();
  if (polled[1].revents != 0) keeper_is_gone_ = true;
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
  take_ended_children();
}

void Supervisor::take_ended_children() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    const auto ended = std::find_if(processes_.begin(), processes_.end(),
                                    [&](const Running& p) { return p.pid == pid && !p.wait_status; });
    if (ended == processes_.end()) continue;  // an adopted orphan
    ended->wait_status = status;
    drain(*ended);
    note_end(*ended);
  }
}

void Supervisor::note_end(Running& process) {
  if (exit_code_of(*process.wait_status) == 0 || plan_restart(process)) return;
  note_failure(process);
}

void Supervisor::note_failure(Running& process) {
  if (phase_ == Phase::running || phase_ == Phase::settling) {
    failed_.push_back(static_cast<std::size_t>(&process - processes_.data()));
    const std::string& refusal = process.restarts.refusal();
    say(fmt::format("{} (pid {}) {}{}{}", process.spec->label, process.pid,
                    describe_exit(*process.wait_status),
                    refusal.empty() ? "" : "; it is not started again: ", refusal));
  }
  if (phase_ == Phase::running) enter(Phase::settling, 0);
}

// A scheduler whose workers have all left has nothing to come back for.
bool Supervisor::has_work_left(const Running& process) const {
  return process.spec->role != "scheduler" ||
         std::any_of(processes_.begin(), processes_.end(), [&](const Running& other) {
           return &other != &process && (!other.wait_status || other.restart_at);
         });
}

// Returns whether the process will be started again.
bool Supervisor::plan_restart(Running& process) {
  if (phase_ != Phase::running || options_.restarts_max == 0) return false;
  if (!is_restartable(process.spec->role, *process.wait_status) || !has_work_left(process)) return false;
  const std::string end = describe_exit(*process.wait_status);
  const auto newest = checkpoint::newest_point_below(options_.recovery_folder, checkpoint::real_storage());
  const auto delay = process.restarts.after(end, newest ? to_string(*newest) : "");
  if (!delay) return false;
  const auto seconds = std::chrono::duration<double>(*delay).count();
  say(fmt::format("{} (pid {}) {}: starting it again{} ({} of {})", process.spec->label, process.pid, end,
                  *delay == Duration::zero() ? "" : fmt::format(" in {:g} s", seconds),
                  process.restarts.restarts(), options_.restarts_max));
  process.restart_at = real_clock().now() + *delay;
  return true;
}

void Supervisor::restart_what_is_due() {
  for (Running& process : processes_)
    if (process.restart_at && real_clock().now() >= *process.restart_at) restart(process);
}

void Supervisor::restart(Running& process) {
  const auto started = start_process_of(process, O_APPEND);
  if (started) return;
  say(fmt::format("{} cannot be started again: {}", process.spec->label, started.error().message));
  process.restart_at.reset();
  note_failure(process);
}

void Supervisor::enter(Phase phase, int signal_number) {
  phase_ = phase;
  for (Running& process : processes_) process.restart_at.reset();  // the job ends: nobody comes back
  deadline_ = real_clock().now() + (phase == Phase::settling ? options_.settle : options_.grace);
  if (signal_number != 0) signal_all(signal_number);
}

void Supervisor::signal_all(int number) {
  // The group's number is ours as long as its leader has not been reaped.
  for (Running& process : processes_)
    if (!process.wait_status) {
      ::kill(-process.pid, number);
      process.was_asked_to_end = true;
    }
}

void Supervisor::take_output(Running& process, Console::Stream stream) {
  Output& output = process.outputs[stream];
  std::array<char, 64 * 1024> bytes;
  const ssize_t size = ::read(output.fd.get(), bytes.data(), bytes.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    output.fd.reset();
    return;
  }
  const std::string_view text(bytes.data(), static_cast<std::size_t>(size));
  if (process.log && ::write(process.log.get(), text.data(), text.size()) < 0) {
    say(fmt::format("cannot write {}/{}: {}", options_.log_folder, process.spec->log_name,
                    fail_errno("", errno).value().message));
    process.log.reset();
  }
  if (stream == Console::out && live_owner_ == &process) set_live(nullptr);  // its line goes on or ends now
  output.lines.feed(text, [&](std::string_view line) { show(process, stream, line); });
  if (stream == Console::out && !output.lines.unfinished().empty()) set_live(&process);
}

// Shows the unfinished line of a process below all others, or that of none.
void Supervisor::set_live(const Running* process) {
  live_owner_ = process;
  if (process == nullptr)
    console_.live({}, {});
  else
    console_.live(process->spec->label, process->outputs[Console::out].lines.unfinished());
}

void Supervisor::show(Running& process, Console::Stream stream, std::string_view line) {
  console_.line(stream, process.spec->label, line);
  std::deque<std::string>& last = process.outputs[stream].last;
  last.emplace_back(line);
  if (last.size() > last_lines_max) last.pop_front();
}

// What an ended process has written and nobody has read yet. Its children may hold the pipes open: no
// waiting.
void Supervisor::drain(Running& process) {
  for (const Console::Stream stream : {Console::out, Console::error}) {
    Output& output = process.outputs[stream];
    // As many reads as a pipe can need: a child of it that goes on writing must not keep us here.
    for (int reads = 0; output.fd && reads < 4; ++reads) take_output(process, stream);
    if (live_owner_ == &process) set_live(nullptr);
    if (!output.lines.unfinished().empty()) show(process, stream, output.lines.unfinished());
    output.lines.clear();
  }
}

int Supervisor::finish() {
  const bool all_ended = kill_descendants(kill_timeout);
  for (Running& process : processes_) drain(process);
  if (!all_ended) say("some processes do not end even when killed");
  const int code = report();
  console_.flush(flush_timeout_ms);
  return code;
}

// "scheduler, worker 0 exited with code 75; worker 1 ran on until asked to end". A process that never
// came to init() is absent to all others; only who started it knows more.
std::string Supervisor::verdicts() const {
  constexpr std::size_t labels_max = 8;
  std::vector<std::pair<std::string, std::vector<std::string>>> by_end;
  for (const Running& process : processes_) {
    const std::string end = process.was_asked_to_end || !process.wait_status
                                ? std::string("ran on until asked to end")
                                : describe_exit(*process.wait_status);
    auto found =
        std::find_if(by_end.begin(), by_end.end(), [&](const auto& entry) { return entry.first == end; });
    if (found == by_end.end()) found = by_end.insert(by_end.end(), {end, {}});
    found->second.push_back(process.spec->label);
  }
  std::vector<std::string> parts;
  for (auto& [end, labels] : by_end) {
    const std::size_t count = labels.size();
    if (count > labels_max) {
      labels.resize(labels_max);
      labels.push_back(fmt::format("{} more", count - labels_max));
    }
    parts.push_back(fmt::format("{} {}", fmt::join(labels, ", "), end));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

int Supervisor::report() {
  if (keeper_is_gone_) return 128 + SIGKILL;
  if (interrupted_by_ != 0) {
    say(fmt::format("ended by signal {} ({})", interrupted_by_, ::strsignal(interrupted_by_)));
    return 128 + interrupted_by_;
  }
  if (failed_.empty()) return 0;
  const Running& cause =
      processes_[*std::min_element(failed_.begin(), failed_.end(), [&](std::size_t a, std::size_t b) {
        return rank_as_cause(processes_[a]) < rank_as_cause(processes_[b]);
      })];
  const auto& last =
      cause.outputs[cause.outputs[Console::error].last.empty() ? Console::out : Console::error].last;
  if (processes_.size() > 1) say(fmt::format("how its processes ended: {}", verdicts()));
  say(fmt::format("the job failed: {} {}{}", cause.spec->label, describe_exit(*cause.wait_status),
                  last.empty() ? std::string{} : "; its last lines:"));
  for (const std::string& line : last) console_.line(Console::error, cause.spec->label, line);
  return exit_code_of(*cause.wait_status);
}

}  // namespace

int supervise(const LaunchSpec& spec, const SupervisorOptions& options) {
  return Supervisor(spec, options).run();
}

}  // namespace muster::launch
