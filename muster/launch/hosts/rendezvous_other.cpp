// The side of a host that comes to the first one.
#include <fmt/format.h>

#include <algorithm>

#include "muster/cluster/cluster.h"
#include "muster/launch/hosts/rendezvous_side.h"

namespace muster::launch {
namespace {

namespace message = rendezvous_message;
using cluster::in_seconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr net::ConnectionLimits other_limits{.payload_size_bytes = rendezvous_roster_bytes_max,
                                             .unsent_size_bytes = 1 << 20};
constexpr Duration attempt_limit = seconds(5);
constexpr Duration retry_delay_max = seconds(1);

class OtherHost final : public RendezvousSide {
 public:
  OtherHost(const RendezvousOptions& options, RendezvousOutcome& outcome)
      : RendezvousSide(options, outcome),
        start_(options.clock.now()),
        next_line_(start_ + options.times.say_every),
        next_attempt_(start_) {}

 private:
  enum class State { apart, connecting, waiting, member, over };

  void tick() override {
    const TimePoint now = options_.clock.now();
    if (state_ == State::apart) try_again(now);
    if (state_ == State::connecting && now - last_heard_ >= attempt_limit)
      lost({Code::timeout, fmt::format("{} does not answer", place())});
    if (state_ == State::waiting || state_ == State::member) keep_alive(now);
    if (state_ < State::member) say_what_is_missing(now);
  }

  // ---- Coming

  void try_again(TimePoint now) {
    if (now < next_attempt_) return;
    const auto ips = place_ips();
    if (!ips) return;
    if (!*ips) {
      why_ = ips->error().message;
      return;
    }
    const std::string& ip = (*ips)->at(attempts_++ % (*ips)->size());
    state_ = State::connecting;
    last_heard_ = now;
    connection_ = net::Connection::connect(
        loop_, {ip, options_.place.port}, other_limits,
        {.opened = [this] { introduce(); },
         .received = [this](const net::Frame& frame) { received(frame); },
         .closed = [this](const Error& error) { lost(error); }},
        {.security = options_.security,
         .expected = {.hosts = {options_.place.host}, .node_id = std::string(net::scheduler_node_id)},
         .peer_name = "the first host"});
  }

  void introduce() {
    message::Report report{.hosts = options_.hosts, .preset = options_.preset, .host = options_.own};
    const bool is_elsewhere = !net::is_loopback(connection_->peer().ip);
    if (is_elsewhere && !std::exchange(has_warned_, true)) warn_of_open_network();
    if (is_elsewhere) report.host.interface = interface_towards(connection_->peer());
    state_ = State::waiting;
    why_ = "it has not yet answered";
    send(report);
  }

  void say_what_is_missing(TimePoint now) {
    const double waited_s = in_seconds(now - start_);
    if (state_ != State::waiting && now - start_ >= options_.times.limit)
      return give_up({Code::timeout,
                      fmt::format("the first host of the job, {}, was not reached within {:.3g} s "
                                  "(MS_TOPO_TIMEOUT): {}. Is the same line running there, and does that port "
                                  "let this host through?",
                                  place(), waited_s, why_)});
    if (now < next_line_) return;
    next_line_ = now + options_.times.say_every;
    if (state_ == State::waiting)
      say(fmt::format("waiting since {:.3g} s with the first host, {}, for the others", waited_s, place()));
    else
      say(fmt::format("waiting since {:.3g} s for the first host, {}: {}", waited_s, place(), why_));
  }

  // ---- Being there

  void send(const RendezvousMessage& message) {
    connection_->send(std::make_shared<const std::vector<std::byte>>(encode(message)));
  }

  void keep_alive(TimePoint now) {
    if (now - last_heard_ > options_.times.silence_max)
      return lost({Code::timeout, fmt::format("nothing was heard from it for {:.3g} s",
                                              in_seconds(options_.times.silence_max))});
    if (now - last_heard_ >= options_.times.silence_told && !std::exchange(is_silence_told_, true))
      say(silence_line(fmt::format("the first host, {},", place()), options_.times));
    if (now < next_beat_) return;
    next_beat_ = now + options_.times.beat_every;
    send(message::Beat{});
  }

  void received(const net::Frame& frame) {
    last_heard_ = options_.clock.now();
    if (std::exchange(is_silence_told_, false)) say("the first host speaks again");
    const auto message = decode_rendezvous_message(frame);
    if (!message) return lost({Code::refused, message.error().message});
    if (const auto* refusal = std::get_if<message::Refusal>(&*message))
      return lost({Code::refused, refusal->reason});
    if (const auto* ended = std::get_if<message::Ended>(&*message))
      return over({ended->exit_code, ended->reason});
    if (const auto* roster = std::get_if<message::Roster>(&*message)) take(*roster);
  }

  void take(const message::Roster& roster) {
    if (static_cast<std::int64_t>(roster.hosts.size()) != options_.hosts)
      return lost({Code::refused,
                   fmt::format("{} names {} hosts of {}", place(), roster.hosts.size(), options_.hosts)});
    state_ = State::member;
    outcome_.met(roster.hosts);
    if (work_ended_) send(message::Ended{*work_ended_, {}});
  }

  void own_work_ended(int exit_code) override {
    if (work_ended_) return;
    work_ended_ = exit_code;
    if (state_ == State::member) send(message::Ended{exit_code, {}});
  }

  // ---- Going

  void lost(const Error& error) {
    connection_.reset();
    if (state_ == State::member)
      return over({cluster::exit_code_peer_lost,
                   fmt::format("the first host, {}, was lost: {}", place(), error.message)});
    if (error.code == Code::refused || error.code == Code::corrupt) return give_up(error);
    state_ = State::apart;
    why_ = error.message;
    const Duration delay = milliseconds(100) * (1 << std::min<std::size_t>(attempts_, 8));
    next_attempt_ = options_.clock.now() + std::min(delay, retry_delay_max);
  }

  void give_up(const Error& error) {
    state_ = State::over;
    connection_.reset();
    outcome_.met(fail(error));
  }

  void over(Lease::End end) {
    connection_.reset();
    if (state_ != State::member) return give_up({Code::refused, end.reason});
    state_ = State::over;
    outcome_.over(std::move(end));
  }

  // What was said last is heard when the first host answers it with the end of the job.
  void say_goodbye() override {
    if (state_ == State::member && !work_ended_) own_work_ended(cluster::exit_code_peer_lost);
    if (state_ != State::member) connection_.reset();
  }
  bool is_heard() const override { return connection_ == nullptr; }

  const TimePoint start_;
  TimePoint next_line_, next_attempt_, next_beat_{}, last_heard_{};
  State state_ = State::apart;
  bool is_silence_told_ = false;
  bool has_warned_ = false;
  std::string why_ = "its name is not known yet";
  std::size_t attempts_ = 0;
  std::optional<int> work_ended_;
  std::unique_ptr<net::Connection> connection_;
};

}  // namespace

std::unique_ptr<RendezvousSide> make_other_host(const RendezvousOptions& options,
                                                RendezvousOutcome& outcome) {
  return std::make_unique<OtherHost>(options, outcome);
}

}  // namespace muster::launch
