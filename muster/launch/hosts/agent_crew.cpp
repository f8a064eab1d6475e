#include "muster/launch/hosts/agent_crew.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "muster/launch/process.h"

namespace muster::launch {
namespace {

constexpr std::size_t said_lines_max = 5;
constexpr std::size_t orders_size_max = 64 << 20;

}  // namespace

Result<std::unique_ptr<AgentCrew>> AgentCrew::start(std::string host, const std::string& folder,
                                                    const SshOptions& options, const Clock& clock) {
  std::unique_ptr<AgentCrew> crew(new AgentCrew(std::move(host), options, clock));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  const net::Descriptor read(ends[0]);
  crew->input_ = net::Descriptor(ends[1]);
  ::fcntl(crew->input_.get(), F_SETFL, O_NONBLOCK);
  MUSTER_TRY(ChildProcess child,
             start_process({.arguments = ssh_arguments(crew->host_, options)}, read.get()));
  crew->ssh_pid_ = child.pid;
  crew->output_ = std::move(child.out);
  crew->error_ = std::move(child.error);
  crew->send(agent::Setup{.folder = folder});
  return crew;
}

AgentCrew::~AgentCrew() {
  // Other code may have reaped it with all children: then the number is another's.
  if (ssh_pid_ < 0 || ::waitpid(ssh_pid_, nullptr, WNOHANG) != 0) return;
  ::kill(ssh_pid_, SIGKILL);
  ::waitpid(ssh_pid_, nullptr, 0);
}

void AgentCrew::set_listener(CrewListener& listener) {
  listener_ = &listener;
  if (!loss_.empty()) listener_->on_loss(*this, loss_);  // it was lost before there was a listener
}

void AgentCrew::reserve(std::uint32_t count, std::uint16_t min, std::uint16_t max) {
  awaits_ports_ = true;
  send(agent::Reserve{.count = count, .min = min, .max = max});
}

void AgentCrew::make_files(const std::vector<FileSpec>& files) {
  for (const FileSpec& file : files) {
    if (file.contents.size() + file.path.size() + 64 > agent::payload_size_max)
      return lose(fmt::format("the file '{}' is too large to be handed on", file.path));
    send(agent::MakeFile{.path = file.path, .contents = file.contents, .is_secret = file.is_secret});
  }
}

void AgentCrew::start(std::size_t process, const ProcessSpec& spec) {
  send(agent::Start{.process = static_cast<std::uint32_t>(process),
                    .arguments = spec.arguments,
                    .environment = spec.environment,
                    .preload = spec.preload});
}

void AgentCrew::signal(std::size_t process, int number) {
  send(agent::Signal{.process = static_cast<std::uint32_t>(process),
                     .number = static_cast<std::uint32_t>(number)});
}

void AgentCrew::begin_end() {
  if (is_ending_ || !loss_.empty()) return;
  is_ending_ = true;
  send(agent::End{});
}

void AgentCrew::send(const agent::Message& message) {
  if (!input_ || !loss_.empty()) return;
  if (queue_.size() > orders_size_max) return lose("it takes no orders any more");
  queue_ += encode(message);
  write_some();
}

void AgentCrew::write_some() {
  while (input_ && !queue_.empty()) {
    const ssize_t written = ::write(input_.get(), queue_.data(), queue_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno != EAGAIN) input_.reset();  // how ssh ends tells why
    if (written < 0) return;
    queue_.erase(0, static_cast<std::size_t>(written));
  }
}

void AgentCrew::add_polled(std::vector<pollfd>& polled, bool takes_output) const {
  polled.push_back({.fd = queue_.empty() ? -1 : input_.get(), .events = POLLOUT, .revents = 0});
  polled.push_back({.fd = takes_output ? output_.get() : -1, .events = POLLIN, .revents = 0});
  polled.push_back({.fd = error_.get(), .events = POLLIN, .revents = 0});
}

void AgentCrew::take(std::span<const pollfd> polled) {
  if (polled[0].revents != 0) write_some();
  if (polled[1].revents != 0) take_output();
  if (polled[2].revents != 0) take_words();
  const TimePoint now = clock_.now();
  if (polled[1].fd < 0) heard_at_ = now;  // there was no listener
  watch_silence(now);
  if (now < heartbeat_at_) return;
  heartbeat_at_ = now + agent::heartbeat_interval;
  send(agent::Heartbeat{});
}

bool AgentCrew::watches_silence() const { return hello_ && !is_ending_ && loss_.empty(); }

std::optional<TimePoint> AgentCrew::wake_at() const {
  if (!watches_silence()) return heartbeat_at_;
  return std::min(heartbeat_at_,
                  heard_at_ + (is_silence_told_ ? agent::lease_duration : agent::silence_told));
}

// The connection may stand though the agent is gone: ssh's own keepalives are answered by the sshd.
void AgentCrew::watch_silence(TimePoint now) {
  if (!watches_silence()) return;
  const auto in_seconds = [](Duration time) { return time / std::chrono::seconds(1); };
  if (now - heard_at_ >= agent::lease_duration) {
    const pid_t ssh = ssh_pid_;
    lose(fmt::format("nothing was heard from its agent for {} s: it, or its host, stands still",
                     in_seconds(agent::lease_duration)));
    if (ssh > 0) ::kill(ssh, SIGTERM);  // it would wait for the agent, which ends without it once it goes on
  } else if (now - heard_at_ >= agent::silence_told && !is_silence_told_) {
    is_silence_told_ = true;
    note(fmt::format("has said nothing for {} s; after {} s it is lost", in_seconds(agent::silence_told),
                     in_seconds(agent::lease_duration)));
  }
}

void AgentCrew::note(std::string_view line) {
  if (listener_ != nullptr && !is_ending_) listener_->on_note(*this, line);
}

// Whether there was something.
bool AgentCrew::take_output() {
  std::array<char, 64 * 1024> bytes;
  const ssize_t size = output_ ? ::read(output_.get(), bytes.data(), bytes.size()) : 0;
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (size <= 0) {
    output_.reset();
    return false;
  }
  take_bytes({bytes.data(), static_cast<std::size_t>(size)});
  return true;
}

// What ssh itself says, the agent's shell, and the agent in need.
bool AgentCrew::take_words() {
  std::array<char, 4096> bytes;
  const ssize_t size = error_ ? ::read(error_.get(), bytes.data(), bytes.size()) : 0;
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (size <= 0) {
    error_.reset();
    return false;
  }
  error_lines_.feed({bytes.data(), static_cast<std::size_t>(size)}, [&](std::string_view line) {
    said_.emplace_back(line);
    if (said_.size() > said_lines_max) said_.pop_front();
    note(line);
  });
  return true;
}

void AgentCrew::take_bytes(std::string_view bytes) {
  heard_at_ = clock_.now();
  if (std::exchange(is_silence_told_, false)) note("speaks again");
  if (noise_) {
    *noise_ += bytes;
    const auto greeting = noise_->find(agent::greeting_of_any_format);
    const auto end = greeting == std::string::npos ? greeting : noise_->find('\n', greeting);
    if (end == std::string::npos) {
      if (noise_->size() > agent::noise_size_max)
        lose("the shell there writes without end before it starts the agent");
      return;
    }
    const std::string line = noise_->substr(greeting, end + 1 - greeting);
    if (line != agent::greeting)
      return lose(fmt::format("Muster there is another version: it greets with '{}', and '{}' is expected",
                              line.substr(0, line.size() - 1),
                              agent::greeting.substr(0, agent::greeting.size() - 1)));
    const std::string rest = noise_->substr(end + 1);
    noise_.reset();
    decoder_.append(std::as_bytes(std::span(rest)));
  } else {
    decoder_.append(std::as_bytes(std::span(bytes)));
  }
  take_frames();
}

void AgentCrew::take_frames() {
  while (loss_.empty()) {
    auto frame = decoder_.next();
    if (!frame) return lose(fmt::format("what its agent said: {}", frame.error().message));
    if (!*frame) return;
    auto message = agent::decode(**frame);
    if (!message) return lose(fmt::format("what its agent said: {}", message.error().message));
    take_message(*std::move(message));
  }
}

void AgentCrew::take_message(agent::Message message) {
  if (auto* hello = std::get_if<agent::Hello>(&message)) {
    hello_ = std::move(*hello);
  } else if (auto* ports = std::get_if<agent::Ports>(&message)) {
    ports_ = std::move(ports->numbers);
    awaits_ports_ = false;
  } else if (const auto* failed = std::get_if<agent::Failed>(&message)) {
    lose(failed->message);
  } else if (std::holds_alternative<agent::Gone>(message)) {
    has_gone_ = true;
    input_.reset();
  } else if (std::holds_alternative<agent::Heartbeat>(message)) {
    // It was heard.
  } else if (listener_ == nullptr) {
    lose("its agent said something before it was asked");
  } else if (const auto* started = std::get_if<agent::Started>(&message)) {
    listener_->on_start(started->process, static_cast<pid_t>(started->pid));
  } else if (const auto* not_started = std::get_if<agent::StartFailed>(&message)) {
    listener_->on_start_failure(not_started->process, {Code::not_found, not_started->message});
  } else if (const auto* output = std::get_if<agent::Output>(&message)) {
    listener_->on_output(output->process, output->stream, output->bytes);
  } else if (const auto* said = std::get_if<agent::Note>(&message)) {
    note(said->line);
  } else if (const auto* ended = std::get_if<agent::Ended>(&message)) {
    listener_->on_end(ended->process, static_cast<int>(ended->wait_status));
  } else {
    lose("its agent said what only launchers say");
  }
}

// With its input, ssh ends, and with it what it has started there.
void AgentCrew::lose(std::string reason) {
  if (!loss_.empty()) return;
  loss_ = std::move(reason);
  input_.reset();
  queue_.clear();
  if (listener_ != nullptr) listener_->on_loss(*this, loss_);
}

bool AgentCrew::take_child_end(pid_t pid, int wait_status) {
  if (pid != ssh_pid_) return false;
  ssh_pid_ = -1;
  while (take_output()) {
  }
  while (take_words()) {
  }
  if (!has_gone_) lose(describe_ssh_failure(host_, wait_status, {said_.begin(), said_.end()}, options_));
  return true;
}

void AgentCrew::reap() {
  int status = 0;
  if (ssh_pid_ >= 0 && ::waitpid(ssh_pid_, &status, WNOHANG) == ssh_pid_) take_child_end(ssh_pid_, status);
}

}  // namespace muster::launch
