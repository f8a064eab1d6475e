#include "muster/launch/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "muster/cluster/cluster.h"
#include "muster/launch/measure.h"
#include "muster/launch/status.h"

namespace muster::launch {
namespace {

using namespace std::chrono_literals;
using cluster::in_seconds;
using cluster::Visit;
using cluster::message::Doctor;
using cluster::message::Status;

constexpr Duration connect_limit = 3s;
constexpr Duration answer_limit = 3s;
constexpr Duration linger = 1s;             // after the last doctor that was served
constexpr Duration rendezvous_limit = 30s;  // however many come
constexpr double clock_difference_max_s = 5;
constexpr Duration round_trip_max = 50ms;
constexpr double bandwidth_min_bits = 100e6;

std::string own_host_name() {
  char name[256] = {};
  constexpr std::size_t told_max = 64;  // names on the wire are limited
  return ::gethostname(name, sizeof name - 1) == 0 ? std::string(name).substr(0, told_max) : "?";
}

// What people can do about a connection that was not made.
std::string fix_of_connection(const Error& error, std::uint16_t port, bool is_scheduler) {
  switch (error.code) {
    case Code::refused:
      return "the same certificates or token, or none, on both sides: docs/guide/security.md";
    case Code::not_found:
      return is_scheduler ? fmt::format(
                                "nothing listens on port {} there: start the scheduler, or correct "
                                "the port (MS_SCHED_PORT)",
                                port)
                          : "a firewall rejects it: open the ports that workers listen on (any above 1024)";
    case Code::timeout:
      return fmt::format("packets get lost: is the host up, and do firewalls let TCP port {} through?", port);
    case Code::io:
      return "there is no way to that address: check it, the route and the network mask";
    default:
      return "look at the network between the two hosts";
  }
}

Finding examine_way(std::string subject, const Way& way) {
  Finding finding{.subject = std::move(subject),
                  .value = fmt::format("round trip {:.2f} ms (slowest {:.2f}), {:.3g} Mbit/s",
                                       in_seconds(way.round_trip) * 1e3, in_seconds(way.slowest) * 1e3,
                                       way.bits_per_second / 1e6),
                  .is_warning = true};
  if (way.round_trip > round_trip_max) {
    finding.problem = "far away: each collective call of a step takes some round trips";
    finding.fix = "train on hosts of one site";
  } else if (way.bits_per_second < bandwidth_min_bits) {
    finding.problem = fmt::format("slow: 100 MB of gradients take {:.3g} s", 8e8 / way.bits_per_second);
    finding.fix = "look for a slow link, a full one, or a wrong interface (MS_WORKER_IP chooses)";
  }
  return finding;
}

class Examination {
 public:
  explicit Examination(const NetworkOptions& options)
      : options_(options),
        to_scheduler_{.limit = connect_limit,
                      .security = way_to_scheduler(options.scheduler, options.security)} {}

  std::vector<Finding> run() {
    if (!find_name() || !connect() || !shake_hands()) return std::move(findings_);
    measure_way();
    examine_limits();
    meet_others();
    return std::move(findings_);
  }

 private:
  Finding& add(Finding finding) { return findings_.emplace_back(std::move(finding)); }

  bool find_name() {
    Finding& finding = add({.subject = fmt::format("name '{}'", options_.scheduler.host)});
    auto ips = net::resolve(options_.scheduler.host);
    if (!ips || ips->empty()) {
      finding.problem = ips ? "it has no address" : ips.error().message;
      finding.fix = "use the scheduler's address (MS_SCHED_HOST), or name it in /etc/hosts";
      return false;
    }
    finding.value = fmt::format("{}", fmt::join(*ips, ", "));
    ips_ = *std::move(ips);
    return true;
  }

  // The first address that answers is the scheduler for the rest.
  bool connect() {
    bool is_reached = false;
    for (const std::string& ip : ips_) {
      const net::Address address{ip, options_.scheduler.port};
      Finding& finding = add({.subject = "connection " + net::to_string(address)});
      const TimePoint start = options_.clock.now();
      auto visit = Visit::open(loop_, options_.clock, address, to_scheduler_);
      if (visit) {
        finding.value = fmt::format("in {:.2f} ms", in_seconds(options_.clock.now() - start) * 1e3);
        if (!std::exchange(is_reached, true)) address_ = address;
        continue;
      }
      finding.problem = visit.error().message;
      finding.fix = fix_of_connection(visit.error(), address.port, true);
      finding.is_warning = ips_.size() > 1;
    }
    return is_reached;
  }

  bool shake_hands() {
    Finding& finding = add({.subject = "handshake"});
    const auto answer = ask(cluster::message::StatusRequest{});
    if (!answer || !std::holds_alternative<Status>(answer->body)) {
      finding.problem = answer ? "something else is answered" : answer.error().message;
      finding.fix = "is that the scheduler's port, and Muster of the same version?";
      return false;
    }
    finding.value = fmt::format("a scheduler of Muster answers, {}", protection());
    status_ = std::get<Status>(answer->body);
    add({.subject = "job", .value = job_text()});
    return true;
  }

  std::string job_text() const {
    static constexpr std::string_view states[] = {"forming", "running", "recovering", "ended"};
    const auto are_here = [this](cluster::Role role) {
      return std::ranges::count_if(
          status_.nodes, [role](const Status::Node& node) { return node.role == role && node.is_connected; });
    };
    const std::string servers =
        status_.server_num == 0
            ? ""
            : fmt::format(" and {} of {} servers", are_here(cluster::Role::server), status_.server_num);
    return fmt::format("{} since {:.3g} s, {} of {} workers{} are here (muster status says more)",
                       states[static_cast<std::size_t>(status_.state)], in_seconds(status_.age),
                       are_here(cluster::Role::worker), status_.worker_num, servers);
  }

  std::string_view protection() const {
    if (options_.security == nullptr) return "neither encrypted nor authenticated";
    return options_.security->uses_certificates() ? "encrypted, both sides with certificates"
                                                  : "encrypted, with the token of the job";
  }

  Result<cluster::Message> ask(cluster::MessageBody body) {
    MUSTER_TRY(const auto visit, Visit::open(loop_, options_.clock, address_, to_scheduler_));
    return visit->ask(std::move(body), answer_limit);
  }

  void measure_way() {
    const auto way =
        Visit::open(loop_, options_.clock, address_, to_scheduler_).and_then([this](const auto& visit) {
          return measure(*visit, options_.clock);
        });
    if (!way) {
      add({.subject = "way to it", .problem = way.error().message, .fix = "look at the network"});
      return;
    }
    Finding& clock = add({.subject = "clock"});
    const double ahead_s = in_seconds(way->clock_ahead);
    clock.value =
        fmt::format("the scheduler's is {:.3f} s {}", std::abs(ahead_s), ahead_s >= 0 ? "ahead" : "behind");
    if (std::abs(ahead_s) > clock_difference_max_s) {
      clock.problem = "certificates and the times in logs are judged by it";
      clock.fix = "set the clocks by NTP (timedatectl set-ntp true)";
    }
    add(examine_way("way to it", *way));
  }

  void examine_limits() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const std::uint64_t needed = 128 + 4 * std::uint64_t{status_.worker_num};
    Finding& finding =
        add({.subject = "open files",
             .value = fmt::format("{}, a worker of this job may need {}", limit.rlim_max, needed)});
    if (limit.rlim_max >= needed) return;
    finding.problem = "too few for the connections of a worker to its peers";
    finding.fix = fmt::format("ulimit -n {}", needed);
  }

  // ---- Others
  // -----------------------------------------------------------------------------------------------

  void meet_others() {
    Finding rendezvous{.subject = "other hosts"};
    auto ip = options_.own_ip.empty() ? net::source_address(address_) : Result<std::string>(options_.own_ip);
    auto listener = ip.and_then([&](const std::string& own) {
      return cluster::EchoListener::open(loop_, options_.clock, own, options_.security);
    });
    if (!listener) {
      rendezvous.problem = listener.error().message;
      rendezvous.fix = "workers listen there too: name an address of this host in MS_WORKER_IP";
      add(std::move(rendezvous));
      return;
    }
    self_ = {own_host_name(), (*listener)->address().ip, (*listener)->address().port};
    const TimePoint start = options_.clock.now();
    while (options_.clock.now() < end_of_rendezvous(start, **listener)) look_around();
    if (!met_.empty()) return;
    rendezvous.value = fmt::format(
        "no other `muster doctor` came within {:.3g} s: run it on all of them at the "
        "same time to see the ways between them",
        in_seconds(options_.patience));
    add(std::move(rendezvous));
  }

  TimePoint end_of_rendezvous(TimePoint start, const cluster::EchoListener& listener) const {
    return std::min(std::max(start + options_.patience, listener.last_served() + linger),
                    start + rendezvous_limit);
  }

  // A visit lasts some seconds at most, then comes the next one.
  void look_around() {
    const auto pause = [this] { loop_.run_for(100ms); };
    const auto visit = Visit::open(loop_, options_.clock, address_, to_scheduler_);
    if (!visit) return pause();
    (*visit)->say(cluster::message::MeetDoctors{self_});
    const TimePoint until = options_.clock.now() + 1s;
    while (options_.clock.now() < until) {
      const auto heard = (*visit)->hear(until - options_.clock.now());
      if (!heard) return heard.error().code == Code::timeout ? void() : pause();
      const auto* all = std::get_if<cluster::message::Doctors>(&heard->body);
      if (all == nullptr) return pause();
      for (const Doctor& doctor : all->doctors) visit_other(doctor);
    }
  }

  void visit_other(const Doctor& doctor) {
    if (doctor == self_ || !met_.insert({doctor.address, doctor.port}).second) return;
    const net::Address address{doctor.address, doctor.port};
    const auto subject = fmt::format("to {} ({})", doctor.host, doctor.address);
    const net::ConnectionSecurity security{
        .security = options_.security, .expected = {.hosts = {doctor.address, doctor.host}}, .peer_name = {}};
    const auto visit =
        Visit::open(loop_, options_.clock, address, {.limit = connect_limit, .security = security});
    if (!visit) {
      add({.subject = subject,
           .problem = visit.error().message,
           .fix = fix_of_connection(visit.error(), doctor.port, false)});
      return;
    }
    const auto way = measure(**visit, options_.clock);
    add(way ? examine_way(subject, *way) : Finding{.subject = subject, .problem = way.error().message});
  }

  const NetworkOptions& options_;
  const Visit::Options to_scheduler_;
  std::vector<Finding> findings_;
  net::Loop loop_;
  std::vector<std::string> ips_;
  net::Address address_;  // of the scheduler, the first that answered
  Status status_;
  Doctor self_;
  std::set<std::pair<std::string, std::uint16_t>> met_;
};

}  // namespace

std::vector<Finding> examine_network(const NetworkOptions& options) { return Examination(options).run(); }

}  // namespace muster::launch
