// The first host's side with its sockets.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/cluster/cluster.h"
#include "muster/launch/hosts/rendezvous_side.h"

namespace muster::launch {
namespace {

using Peer = RendezvousHub::Peer;

constexpr net::ConnectionLimits first_limits{.payload_size_bytes = host_report_bytes_max,
                                             .unsent_size_bytes = 2 * rendezvous_roster_bytes_max};

std::vector<std::byte> refusal_frame(const std::string& reason) {
  return encode(rendezvous_message::Refusal{"the first host refused this one: " + reason});
}

class FirstHost final : public RendezvousSide {
 public:
  FirstHost(const RendezvousOptions& options, RendezvousOutcome& outcome)
      : RendezvousSide(options, outcome),
        start_(options.clock.now()),
        next_line_(start_ + options.times.say_every) {}

 private:
  void tick() override {
    if (has_failed_) return;
    if (!hub_) find_place();
    if (!hub_) return;
    hub_->tick(options_.clock.now());
    act();
  }

  void own_work_ended(int exit_code) override {
    if (!hub_) return;
    hub_->work_ended(exit_code);
    act();
  }

  void say_goodbye() override {
    listeners_.clear();
    if (!hub_) return;
    hub_->abort("the first host ended while the hosts met");
    hub_->work_ended(cluster::exit_code_peer_lost);
    act();
    std::erase_if(connections_, [this](const auto& entry) { return !hub_->is_member(entry.first); });
  }

  bool is_heard() const override { return connections_.empty(); }

  // ---- Listening

  void give_up(Error error) {
    has_failed_ = true;
    outcome_.met(fail(std::move(error)));
  }

  void find_place() {
    std::optional<Result<std::vector<std::string>>> ips = std::vector{options_.bind};
    if (options_.bind.empty()) ips = place_ips();
    if (!ips) return wait_for_name("the resolver has not answered");
    if (!*ips) return wait_for_name(ips->error().message);
    std::vector<std::string> local;
    std::ranges::copy_if(**ips, std::back_inserter(local),
                         [](const std::string& ip) { return net::is_unspecified(ip) || net::is_local(ip); });
    if (local.empty()) return give_up(not_here(**ips));
    if (const auto listening = listen(local); !listening) return give_up(listening.error());
    if (!std::ranges::all_of(local, net::is_loopback)) warn_of_open_network();
    HostReport own = options_.own;
    own.address = local.front();
    hub_.emplace(
        RendezvousHub::Config{
            .hosts = options_.hosts, .preset = options_.preset, .place = place(), .times = options_.times},
        std::move(own), options_.clock.now());
  }

  Error not_here(const std::vector<std::string>& ips) const {
    return {
        Code::invalid_argument,
        fmt::format("the hosts of the job meet at {}, and {} is no address of this host ({}), which was "
                    "told that it is the first. Correct the rank or the address; where a NAT or a service "
                    "stands between, MUSTER_BIND says where to listen",
                    place(), fmt::join(ips, ", "),
                    fmt::join(net::local_addresses().value_or(std::vector<std::string>{}), ", "))};
  }

  void wait_for_name(const std::string& why) {
    const TimePoint now = options_.clock.now();
    const double waited_s = cluster::in_seconds(now - start_);
    if (now - start_ >= options_.times.limit)
      return give_up(
          {Code::timeout, fmt::format("the name of the first host, {}, is not known after {:.3g} s: {}",
                                      options_.place.host, waited_s, why)});
    if (now < next_line_) return;
    next_line_ = now + options_.times.say_every;
    say(fmt::format("waiting since {:.3g} s for the name of the first host, {}, to become known: {}",
                    waited_s, options_.place.host, why));
  }

  Result<> listen(const std::vector<std::string>& ips) {
    for (const std::string& ip : ips) {
      MUSTER_TRY(auto listener, net::ConnectionListener::open(
                                    loop_, {ip, options_.place.port}, first_limits,
                                    [this](auto connection) { accept(std::move(connection)); },
                                    {.security = options_.security, .plain_refusal = refusal_frame}));
      listeners_.push_back(std::move(listener));
    }
    return {};
  }

  // ---- Others

  void accept(std::unique_ptr<net::Connection> connection) {
    const Peer peer = next_peer_++;
    net::Connection& accepted = *connection;
    connections_[peer] = std::move(connection);
    accepted.set_events({.received = [this, peer](const net::Frame& frame) { received(peer, frame); },
                         .closed = [this, peer](const Error& error) { closed(peer, error.message); }});
  }

  void received(Peer peer, const net::Frame& frame) {
    const auto message = decode_rendezvous_message(frame);
    net::Connection& connection = *connections_.at(peer);
    if (!message) return turn_away(peer, message.error().message);
    if (!has_interface_ && !net::is_loopback(connection.peer().ip)) {
      has_interface_ = true;
      hub_->set_own_interface(interface_towards(connection.peer()));
    }
    if (const auto source = net::source_address(connection.peer()); source && !hub_->is_member(peer))
      hub_->add_own_source(*source);
    hub_->received(peer, connection.peer().ip, *message, options_.clock.now());
    if (hub_->is_member(peer)) connection.admit();
    act();
  }

  void turn_away(Peer peer, const std::string& why) {
    net::Connection& connection = *connections_.at(peer);
    connection.send(std::make_shared<const std::vector<std::byte>>(refusal_frame(why)));
    connection.finish();
    closed(peer, why);
  }

  void closed(Peer peer, const std::string& why) {
    connections_.erase(peer);
    hub_->closed(peer, why);
    act();
  }

  // Does what the hub wants, and tells the supervisor what has become of it.
  void act() {
    for (const std::string& line : hub_->take_lines()) say(line);
    for (const RendezvousHub::Send& send : hub_->take_sends()) {
      const auto found = connections_.find(send.to);
      if (found == connections_.end()) continue;
      found->second->send(std::make_shared<const std::vector<std::byte>>(encode(send.message)));
      if (!send.is_last || hub_->is_member(send.to)) continue;  // a member closes once it has heard it
      found->second->finish();
      connections_.erase(found);
    }
    if (hub_->roster()) outcome_.met(*hub_->roster());
    if (hub_->failure()) outcome_.met(fail(*hub_->failure()));
    if (hub_->end()) outcome_.over(*hub_->end());
  }

  const TimePoint start_;
  TimePoint next_line_;
  bool has_failed_ = false;
  bool has_interface_ = false;
  std::optional<RendezvousHub> hub_;
  std::vector<std::unique_ptr<net::ConnectionListener>> listeners_;
  std::map<Peer, std::unique_ptr<net::Connection>> connections_;
  Peer next_peer_ = 1;
};

}  // namespace

std::unique_ptr<RendezvousSide> make_first_host(const RendezvousOptions& options,
                                                RendezvousOutcome& outcome) {
  return std::make_unique<FirstHost>(options, outcome);
}

}  // namespace muster::launch
