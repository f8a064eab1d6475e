#include "muster/cluster/host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "muster/base/cores.h"
#include "muster/cluster/forming_table.h"
#include "muster/cluster/messages.h"
#include "muster/cluster/other_users.h"
#include "muster/net/net.h"

namespace muster::cluster {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds poll_interval{100};
constexpr milliseconds resolve_pause{250};
// One look-up may take the system many seconds when no name server answers; a wrong name has to be told
// before.
constexpr milliseconds resolve_time_min{1500};

Error bad_host(const Settings& settings, const std::string& why) {
  return {Code::invalid_argument,
          fmt::format("MS_SCHED_HOST='{}' cannot be used: {}; allowed is {}", settings.scheduler_host, why,
                      allowed_range(*find_variable("MS_SCHED_HOST")))};
}

std::string own_addresses() {
  return fmt::format("{}", fmt::join(net::local_addresses().value_or(std::vector<std::string>{}), ", "));
}

Result<std::string> worker_address(const Settings& settings, const std::vector<std::string>& scheduler_ips) {
  if (settings.worker_ip.empty()) {
    Result<std::string> address = fail(Code::internal, "no address");
    for (const std::string& ip : scheduler_ips) {
      address = net::source_address({ip, settings.scheduler_port});
      if (address) return address;
    }
    return fail(bad_host(settings, address.error().message));
  }
  const auto refuse = [&](const std::string& why) {
    return fail(Code::invalid_argument,
                fmt::format("MS_WORKER_IP='{}' cannot be used: {}; allowed is {}", settings.worker_ip, why,
                            allowed_range(*find_variable("MS_WORKER_IP"))));
  };
  const auto ip = net::parse_ip(settings.worker_ip);
  if (!ip) return refuse("it is no IP address");
  if (net::is_local(*ip)) return *ip;
  return refuse(fmt::format("this host's addresses are {}", own_addresses()));
}

Result<std::vector<std::string>> bound_ips(const Settings& settings) {
  const auto refuse = [&](const std::string& why) {
    return fail(Code::invalid_argument,
                fmt::format("MUSTER_BIND='{}' cannot be used: {}; allowed is {}", settings.bind, why,
                            allowed_range(*find_variable("MUSTER_BIND"))));
  };
  const auto ip = net::parse_ip(settings.bind);
  if (!ip) return refuse("it is no IP address");
  if (net::is_unspecified(*ip) || net::is_local(*ip)) return std::vector{*ip};
  return refuse(fmt::format("this host's addresses are {}", own_addresses()));
}

}  // namespace

Result<std::vector<std::string>> resolve_scheduler(const Settings& settings, const Interrupted& interrupted,
                                                   const Clock& clock) {
  if (const auto ip = net::parse_ip(settings.scheduler_host)) return std::vector{*ip};
  const TimePoint start = clock.now();
  const TimePoint deadline = start + std::max(settings.resolve_timeout, resolve_time_min);
  Announcements announcements(start);
  std::string why = "the resolver did not answer in time (MUSTER_RESOLVE_TIMEOUT lets it take longer)";
  TimePoint next{};
  std::optional<net::LookUp> look_up;
  while (clock.now() < deadline) {
    if (interrupted && interrupted()) return fail(Code::aborted, "interrupted while resolving MS_SCHED_HOST");
    const TimePoint now = clock.now();
    if (now >= announcements.due() && announcements.says(why, now))
      log::warning(
          fmt::format("waiting since {:.3g} s for the scheduler's name MS_SCHED_HOST='{}' to become "
                      "known: {}",
                      in_seconds(now - start), settings.scheduler_host, why));
    if (!look_up && now >= next) look_up.emplace(settings.scheduler_host);
    if (!look_up) {
      std::this_thread::sleep_for(std::min<Duration>(poll_interval, next - clock.now()));
      continue;
    }
    const auto result = look_up->wait_for(poll_interval);
    if (!result) continue;
    if (*result && !(*result)->empty()) return **result;
    why = *result ? "it has no address" : result->error().message;
    if (settings.resolve_timeout.count() == 0) break;
    look_up.reset();
    next = clock.now() + resolve_pause;
  }
  return fail(bad_host(settings, why));
}

Result<std::vector<std::string>> listening_ips(const Settings& settings, const Interrupted& interrupted,
                                               const Clock& clock) {
  if (!settings.bind.empty()) return bound_ips(settings);
  MUSTER_TRY(const auto ips, resolve_scheduler(settings, interrupted, clock));
  std::vector<std::string> local;
  std::copy_if(ips.begin(), ips.end(), std::back_inserter(local), net::is_local);
  if (local.empty())
    return fail(bad_host(
        settings,
        fmt::format("it means {}, which is no address of this host, where the scheduler runs. Where a "
                    "NAT or a service stands between, set MUSTER_BIND to the address to listen at: this "
                    "host has {}",
                    fmt::join(ips, ", "), own_addresses())));
  const bool is_name = !net::parse_ip(settings.scheduler_host);
  if (is_name && settings.scheduler_host != "localhost" &&
      std::all_of(local.begin(), local.end(), net::is_loopback))
    log::warning(fmt::format("MS_SCHED_HOST='{}' means {} here: workers on other hosts cannot reach it",
                             settings.scheduler_host, fmt::join(local, ", ")));
  return local;
}

std::string warn_of_open_network(const std::vector<std::string>& ips) {
  std::string who = fmt::format("any process that reaches {} over the network", fmt::join(ips, ", "));
  if (std::ranges::all_of(ips, net::is_loopback)) {
    const auto other = other_person_here();
    if (!other) return {};
    who = fmt::format("every user of this host, where '{}' runs something too", *other);
  }
  return fmt::format(
      "the job is open to {}, since neither certificates nor a token are set: start it with `muster run` "
      "(without --open), or set MUSTER_TOKEN_FILE in all of its processes. See docs/guide/security.md",
      who);
}

Result<> prepare_recovery_path(const Settings& settings) {
  if (settings.recovery_path.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(settings.recovery_path, error);
  if (!error && !std::filesystem::is_directory(settings.recovery_path, error))
    error = std::make_error_code(std::errc::not_a_directory);
  if (!error && ::access(settings.recovery_path.c_str(), W_OK | X_OK) != 0)
    error = std::error_code(errno, std::generic_category());
  if (!error) return {};
  // A worker can do without for a while: it says so itself, and tries again. Not where no waiting helps.
  if (settings.role != Role::scheduler && error != std::errc::not_a_directory) return {};
  return fail(Code::invalid_argument,
              fmt::format("MS_RECOVERY_PATH='{}' cannot be used: {}; allowed is {}", settings.recovery_path,
                          error.message(), allowed_range(*find_variable("MS_RECOVERY_PATH"))));
}

std::uint64_t wall_clock_us() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

message::Echo stamped(message::Echo echo) {
  echo.wall_clock_us = wall_clock_us();
  return echo;
}

Result<Registration> registration_here(const Settings& settings, const Interrupted& interrupted,
                                       const Clock& clock) {
  MUSTER_TRY_VOID(prepare_recovery_path(settings));
  Registration registration;
  MUSTER_TRY(registration.security, open_security(settings.security, settings.strict));
  MUSTER_TRY(registration.scheduler_ips, resolve_scheduler(settings, interrupted, clock));
  MUSTER_TRY(registration.address, worker_address(settings, registration.scheduler_ips));
  registration.host_key = settings.host_key;
  if (registration.host_key.empty()) {
    MUSTER_TRY(registration.host_key, net::host_key(FixedEnvironment({})));
  }
  // No process shares memory under a key that no other one has.
  if (settings.transport == "tcp") registration.host_key += fmt::format("#{:016x}", entropy());
  registration.traits = settings.traits;
  registration.pid = ::getpid();
  registration.process_space = net::process_space();
  registration.host_name = net::host_name();
  registration.cores_key = allowed_cores_key();
  registration.incarnation = entropy() | 1;
  return registration;
}

net::Identity scheduler_identity(const Settings& settings) {
  return {.hosts = {settings.scheduler_host}, .node_id = std::string(net::scheduler_node_id)};
}

net::Identity identity_of(const Member& member) {
  return {.hosts = {member.address, member.host_name}, .node_id = member.node_id};
}

}  // namespace muster::cluster
