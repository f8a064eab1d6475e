#include "muster/launch/hosts/agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "muster/launch/hosts/agent_messages.h"
#include "muster/launch/keeper.h"
#include "muster/launch/local_crew.h"
#include "muster/launch/ports.h"
#include "muster/launch/process.h"
#include "muster/launch/run_folder.h"

namespace muster::launch {
namespace {

namespace fs = std::filesystem;

constexpr int flush_timeout_ms = 2000;
constexpr std::size_t queue_size_max = 1 << 20;
constexpr int exit_code_lost = 69;
constexpr std::uint32_t ports_max = 1024;

class Agent final : public CrewListener {
 public:
  Agent(std::string run_folder, int keeper_fd, Duration lease, const Clock& clock)
      : clock_(clock),
        run_folder_(std::move(run_folder)),
        keeper_fd_(keeper_fd),
        lease_(lease),
        crew_(run_folder_, clock) {
    crew_.set_listener(*this);
  }

  int run();

  void on_start(std::size_t process, pid_t pid) override {
    send(agent::Started{.process = number(process), .pid = static_cast<std::uint32_t>(pid)});
  }
  void on_start_failure(std::size_t process, const Error& error) override {
    send(agent::StartFailed{.process = number(process), .message = error.message});
  }
  void on_output(std::size_t process, Stream stream, std::string_view bytes) override {
    send(agent::Output{.process = number(process), .stream = stream, .bytes = std::string(bytes)});
  }
  void on_end(std::size_t process, int wait_status) override {
    send(agent::Ended{.process = number(process), .wait_status = static_cast<std::uint32_t>(wait_status)});
  }
  void on_loss(const Crew&, const std::string& reason) override { give_up(reason); }
  void on_note(const Crew&, std::string_view line) override { send(agent::Note{.line = std::string(line)}); }

 private:
  static std::uint32_t number(std::size_t process) { return static_cast<std::uint32_t>(process); }

  Result<> prepare();
  void wait();
  void beat();
  void take_signals();
  void take_input();
  void obey(const agent::Message& message);
  void reserve(const agent::Reserve& request);
  void send(const agent::Message& message) { queue_ += encode(message); }
  void give_up(std::string_view reason);
  void write_some();
  void flush();

  const Clock& clock_;
  std::string run_folder_;
  int keeper_fd_;
  Duration lease_;
  LocalCrew crew_;
  net::Descriptor signals_;
  net::FrameDecoder decoder_{agent::payload_size_max};
  std::string queue_;  // for the launcher
  std::vector<ReservedPorts> ports_;
  TimePoint heard_at_ = clock_.now();
  TimePoint beat_at_ = heard_at_ + agent::heartbeat_interval;
  bool is_over_ = false;
  bool was_told_to_end_ = false;
  int exit_code_ = 0;
};

std::string agent_host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

Result<> Agent::prepare() {
  sigset_t handled;
  ::sigemptyset(&handled);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) ::sigaddset(&handled, number);
  ::sigprocmask(SIG_BLOCK, &handled, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = net::Descriptor(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return fail_errno("cannot watch for signals", errno);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO})
    if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
      return fail_errno("cannot speak over standard input and output", errno);
  MUSTER_TRY_VOID(adopt_orphans());
  return make_run_folder(run_folder_);
}

int Agent::run() {
  queue_ += agent::greeting;
  if (const auto prepared = prepare(); !prepared)
    give_up(prepared.error().message);
  else
    send(agent::Hello{
        .host = agent_host_name(), .pid = static_cast<std::uint32_t>(::getpid()), .run_folder = run_folder_});
  while (!is_over_) wait();
  const bool none_left = kill_descendants(kill_timeout, clock_);
  remove_run_folder(run_folder_);
  if (was_told_to_end_) {
    crew_.drain();
    send(agent::Gone{.none_left = none_left});
  }
  flush();
  return exit_code_;
}

void Agent::give_up(std::string_view reason) {
  send(agent::Failed{.message = std::string(reason)});
  is_over_ = true;
  exit_code_ = exit_code_lost;
}

void Agent::wait() {
  std::vector<pollfd> polled = {
      {.fd = signals_.get(), .events = POLLIN, .revents = 0},
      {.fd = keeper_fd_, .events = POLLIN, .revents = 0},
      {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
      {.fd = STDOUT_FILENO, .events = static_cast<short>(queue_.empty() ? 0 : POLLOUT), .revents = 0}};
  const std::size_t crew_at = polled.size();
  crew_.add_polled(polled, queue_.size() < queue_size_max);
  TimePoint deadline = std::min(heard_at_ + lease_, beat_at_);
  if (const auto time = crew_.wake_at()) deadline = std::min(deadline, *time);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock_.now());
  const int timeout_ms = static_cast<int>(std::max<std::int64_t>(0, left.count()));
  if (::poll(polled.data(), polled.size(), timeout_ms) < 0) return;

  crew_.take(std::span(polled).subspan(crew_at));
  if (polled[0].revents != 0) take_signals();
  if (polled[2].revents != 0) take_input();
  if ((polled[3].revents & POLLOUT) != 0) write_some();
  beat();
  // The launcher listens no more, or is silent, or the watchdog is gone.
  const bool is_closed = (polled[3].revents & (POLLERR | POLLHUP)) != 0;
  if (is_closed || polled[1].revents != 0 || clock_.now() >= heard_at_ + lease_) {
    is_over_ = true;
    exit_code_ = exit_code_lost;
  }
}

// What waits to be heard says as much.
void Agent::beat() {
  const TimePoint now = clock_.now();
  if (now < beat_at_) return;
  beat_at_ = now + agent::heartbeat_interval;
  if (queue_.empty()) send(agent::Heartbeat{});
}

void Agent::take_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const int signal_number = static_cast<int>(info.ssi_signo);
    if (signal_number != SIGCHLD)
      give_up(fmt::format("the agent there was ended by signal {} ({})", signal_number,
                          ::strsignal(signal_number)));
  }
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) crew_.take_child_end(pid, status);
}

void Agent::take_input() {
  std::array<std::byte, 64 * 1024> bytes;
  const ssize_t size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    is_over_ = true;
    exit_code_ = exit_code_lost;
    return;
  }
  heard_at_ = clock_.now();
  decoder_.append(std::span(bytes).first(static_cast<std::size_t>(size)));
  while (!is_over_) {
    const auto frame = decoder_.next();
    if (!frame) return give_up(fmt::format("what the launcher said: {}", frame.error().message));
    if (!*frame) return;
    const auto message = agent::decode(**frame);
    if (!message) return give_up(fmt::format("what the launcher said: {}", message.error().message));
    obey(*message);
  }
}

void Agent::obey(const agent::Message& message) {
  if (const auto* setup = std::get_if<agent::Setup>(&message)) {
    std::error_code error;
    fs::current_path(setup->folder, error);
    if (error)
      give_up(
          fmt::format("the job's folder '{}' cannot be entered there ({}): it has to be on every host, "
                      "under the same name",
                      setup->folder, error.message()));
  } else if (const auto* request = std::get_if<agent::Reserve>(&message)) {
    reserve(*request);
  } else if (const auto* file = std::get_if<agent::MakeFile>(&message)) {
    crew_.make_files({{.path = file->path, .contents = file->contents, .is_secret = file->is_secret}});
  } else if (const auto* start = std::get_if<agent::Start>(&message)) {
    crew_.start(
        start->process,
        {.arguments = start->arguments, .environment = start->environment, .preload = start->preload});
  } else if (const auto* signal = std::get_if<agent::Signal>(&message)) {
    crew_.signal(signal->process, static_cast<int>(signal->number));
  } else if (std::holds_alternative<agent::End>(message)) {
    is_over_ = was_told_to_end_ = true;
  } else if (!std::holds_alternative<agent::Heartbeat>(message)) {
    give_up("the launcher said what only agents say");
  }
}

void Agent::reserve(const agent::Reserve& request) {
  if (request.count > ports_max)
    return give_up(fmt::format("{} ports are too many to reserve", request.count));
  auto reserved = reserve_ports({.count = request.count, .min = request.min, .max = request.max}, Reach::ssh);
  if (!reserved) return give_up(reserved.error().message);
  send(agent::Ports{.numbers = reserved->numbers()});
  ports_.push_back(std::move(*reserved));
}

void Agent::write_some() {
  const ssize_t written = ::write(STDOUT_FILENO, queue_.data(), queue_.size());
  if (written >= 0)
    queue_.erase(0, static_cast<std::size_t>(written));
  else if (errno != EAGAIN && errno != EINTR)
    queue_.clear();  // the launcher is gone: poll says so too
}

void Agent::flush() {
  while (!queue_.empty()) {
    pollfd ready{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, flush_timeout_ms) <= 0 || (ready.revents & (POLLERR | POLLHUP)) != 0) return;
    write_some();
  }
}

}  // namespace

int run_agent(const Environment& environment, const Clock& clock) {
  const std::string run_folder = new_run_folder(environment);
  const auto work = [&](int keeper_fd) {
    return run_agent_kept(run_folder, keeper_fd, agent::lease_duration, clock);
  };
  return keep(
      work,
      {.clock = clock, .run_folder = run_folder, .stopped_max = agent::lease_duration + stopped_margin});
}

int run_agent_kept(const std::string& run_folder, int keeper_fd, Duration lease, const Clock& clock) {
  return Agent(run_folder, keeper_fd, lease, clock).run();
}

}  // namespace muster::launch
