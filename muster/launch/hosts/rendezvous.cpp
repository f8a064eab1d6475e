#include "muster/launch/hosts/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>

#include <csignal>
#include <thread>

#include "muster/launch/hosts/rendezvous_side.h"

namespace muster::launch {

using std::chrono::milliseconds;

// ---- Between the threads ----------------------------------------------------------------------------------

Result<std::unique_ptr<RendezvousOutcome>> RendezvousOutcome::create() {
  MUSTER_TRY(auto met, net::StopSignal::create());
  MUSTER_TRY(auto over, net::StopSignal::create());
  return std::unique_ptr<RendezvousOutcome>(new RendezvousOutcome(std::move(met), std::move(over)));
}

void RendezvousOutcome::met(Result<std::vector<HostReport>> roster) {
  {
    const std::lock_guard lock(mutex_);
    if (roster_) return;
    roster_ = std::move(roster);
  }
  met_.raise();
}

void RendezvousOutcome::over(Lease::End end) {
  {
    const std::lock_guard lock(mutex_);
    if (end_) return;
    end_ = std::move(end);
  }
  over_.raise();
}

std::optional<Lease::End> RendezvousOutcome::end() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

Result<std::vector<HostReport>> RendezvousOutcome::wait(std::span<const int> abort_fds) {
  std::vector<pollfd> polled = {{.fd = met_.fd(), .events = POLLIN, .revents = 0}};
  for (const int fd : abort_fds) polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  while (!met_.raised()) {
    ::poll(polled.data(), polled.size(), -1);  // the rendezvous has a limit of its own
    for (const pollfd& each : std::span(polled).subspan(1))
      if (each.revents != 0) return fail(Code::aborted, "ended while the hosts met");
  }
  const std::lock_guard lock(mutex_);
  return *roster_;
}

// ---- A side of the rendezvous
// --------------------------------------------------------------------------------

void RendezvousSide::run() {
  constexpr auto goodbye_time = milliseconds(1000);
  constexpr auto goodbye_round = milliseconds(5);
  tick_again();
  if (!stopping_) loop_.run();
  loop_.set_timer(TimePoint::max(), {});
  say_goodbye();
  const TimePoint deadline = options_.clock.now() + goodbye_time;
  while (!is_heard() && options_.clock.now() < deadline) loop_.run_for(goodbye_round);
}

void RendezvousSide::stop() {
  loop_.post([this] {
    stopping_ = true;
    loop_.stop();
  });
}

void RendezvousSide::work_ended(int exit_code) {
  loop_.post([this, exit_code] { own_work_ended(exit_code); });
}

void RendezvousSide::tick_again() {
  constexpr Duration tick_max = milliseconds(100);
  tick();
  const Duration beat = options_.times.beat_every;
  const Duration pause = outcome_.has_met() ? beat : std::min(tick_max, beat);
  loop_.set_timer(options_.clock.now() + pause, [this] { tick_again(); });
}

std::optional<Result<std::vector<std::string>>> RendezvousSide::place_ips() {
  constexpr Duration pause = milliseconds(250);
  if (const auto ip = net::parse_ip(options_.place.host)) return std::vector{*ip};
  const TimePoint now = options_.clock.now();
  if (!look_up_ && now < next_look_up_) return std::nullopt;
  if (!look_up_) look_up_.emplace(options_.place.host);
  auto found = look_up_->wait_for(Duration::zero());
  if (!found) return std::nullopt;
  look_up_.reset();
  next_look_up_ = now + pause;
  if (*found && (*found)->empty()) return fail(Code::not_found, options_.place.host + " has no address");
  return found;
}

std::string RendezvousSide::place() const {
  return net::is_ip_v6(options_.place.host) ? net::to_string({options_.place.host, options_.place.port})
                                            : fmt::format("{}:{}", options_.place.host, options_.place.port);
}

void RendezvousSide::warn_of_open_network() const {
  if (options_.security != nullptr) return;
  say(
      fmt::format("warning: {}, since neither certificates nor a token are set (--token-file). It is {}: see "
                  "docs/guide/security.md",
                  options_.openness, place()));
}

std::string interface_towards(const net::Address& peer) {
  return net::source_address(peer).and_then(net::interface_of).value_or("");
}

// ---- The rendezvous
// ------------------------------------------------------------------------------------------

class Rendezvous::Thread {
 public:
  Thread(RendezvousOptions options, RendezvousOutcome& outcome)
      : options_(std::move(options)),
        side_(options_.own.index == 0 ? make_first_host(options_, outcome)
                                      : make_other_host(options_, outcome)) {
    // The signals are the supervisor's.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { side_->run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Thread() {
    side_->stop();
    thread_.join();
  }
  RendezvousSide& side() { return *side_; }

 private:
  const RendezvousOptions options_;
  const std::unique_ptr<RendezvousSide> side_;
  std::thread thread_;
};

Rendezvous::Rendezvous() = default;
Rendezvous::~Rendezvous() = default;

Result<std::unique_ptr<Rendezvous>> Rendezvous::open(RendezvousOptions options) {
  MUSTER_CHECK(options.hosts >= 1 && options.own.index >= 0 && options.own.index < options.hosts,
               "settings were checked before");
  std::unique_ptr<Rendezvous> rendezvous(new Rendezvous);
  MUSTER_TRY(rendezvous->outcome_, RendezvousOutcome::create());
  rendezvous->thread_ = std::make_unique<Thread>(std::move(options), *rendezvous->outcome_);
  return rendezvous;
}

Result<std::vector<HostReport>> Rendezvous::wait(std::span<const int> abort_fds) {
  return outcome_->wait(abort_fds);
}

int Rendezvous::fd() const { return outcome_->fd(); }
std::optional<Lease::End> Rendezvous::take() { return outcome_->end(); }
void Rendezvous::work_ended(int exit_code) { thread_->side().work_ended(exit_code); }

}  // namespace muster::launch
