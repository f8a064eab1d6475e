#include "muster/launch/state_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <map>

#include "muster/launch/child_environment.h"

namespace muster::launch {
namespace {

using cluster::message::Status;

constexpr timespec pause{.tv_sec = 0, .tv_nsec = 500'000'000};

std::size_t workers_in(const Status& status) {
  return static_cast<std::size_t>(
      std::count_if(status.nodes.begin(), status.nodes.end(),
                    [](const auto& node) { return node.role == cluster::Role::worker; }));
}

std::optional<std::uint64_t> newest_step(const Status& status) {
  std::optional<std::uint64_t> newest;
  for (const Status::Node& node : status.nodes)
    if (node.step != cluster::no_step) newest = std::max(newest.value_or(0), node.step);
  return newest;
}

[[noreturn]] void keep_asking(const ProcessSpec& spec, const std::string& token, const Clock& clock,
                              int news) {
  const ChildEnvironment environment(spec);
  const auto scheduler = find_scheduler("", environment);
  const auto security = token.empty() ? find_security(environment) : net::Security::from_token(token);
  if (!scheduler || !security) ::_exit(0);
  StepRate rate;
  std::string said;
  while (true) {
    const auto status = ask_status(*scheduler, *security, clock);
    const std::string text = status ? state_text(*status, rate, clock.now()) : said;
    if (text != said) {
      const std::string line = text + '\n';
      if (::write(news, line.data(), line.size()) < 0) ::_exit(0);
      said = text;
    }
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace

void StepRate::add(TimePoint time, std::uint64_t step) {
  if (!samples_.empty() && step < samples_.back().step) samples_.clear();  // it went back to a recovery point
  samples_.push_back({time, step});
  while (samples_.size() > 2 && time - samples_.front().time > window) samples_.pop_front();
}

std::optional<double> StepRate::per_second() const {
  if (samples_.size() < 2) return std::nullopt;
  const double seconds = cluster::in_seconds(samples_.back().time - samples_.front().time);
  if (seconds <= 0) return std::nullopt;
  return static_cast<double>(samples_.back().step - samples_.front().step) / seconds;
}

std::string state_text(const JobStatus& job, StepRate& rate, TimePoint now) {
  const Status& status = job.status;
  switch (status.state) {
    case Status::State::forming:
      return fmt::format("forming, {} of {} workers", workers_in(status), status.worker_num);
    case Status::State::recovering:
      return fmt::format("recovering, {} of {} workers, epoch {}", workers_in(status), status.worker_num,
                         job.epoch);
    case Status::State::ended:
      return "ending";
    case Status::State::running:
      break;
  }
  const auto step = newest_step(status);
  if (!step) return "running";
  rate.add(now, *step);
  const auto speed = rate.per_second();
  return speed ? fmt::format("running, step {}, {:.3g} steps/s", *step, *speed)
               : fmt::format("running, step {}", *step);
}

Result<StateWatch> StateWatch::start(const ProcessSpec& spec, const std::string& token, const Clock& clock) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno("cannot make a pipe", errno);
  net::Descriptor read(ends[0]), write(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("cannot start another process", errno);
  if (pid == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    keep_asking(spec, token, clock, write.get());
  }
  return StateWatch(std::move(read));
}

void StateWatch::take() {
  std::array<char, 4096> bytes;
  const ssize_t size = ::read(news_.get(), bytes.data(), bytes.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    news_.reset();
    return;
  }
  unfinished_.append(bytes.data(), static_cast<std::size_t>(size));
  const auto last = unfinished_.rfind('\n');
  if (last == std::string::npos) return;
  const auto before = last == 0 ? std::string::npos : unfinished_.rfind('\n', last - 1);
  const auto begin = before == std::string::npos ? 0 : before + 1;
  text_ = unfinished_.substr(begin, last - begin);
  unfinished_.erase(0, last + 1);
}

}  // namespace muster::launch
