#include "muster/cluster/roster.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>

namespace muster::cluster {

std::string_view to_string(Role role) {
  switch (role) {
    case Role::scheduler:
      return "scheduler";
    case Role::worker:
      return "worker";
    case Role::server:
      return "server";
  }
  return "unknown role";
}

std::uint32_t workers_on_cores_of(const Member& worker, const Roster& roster) {
  return static_cast<std::uint32_t>(std::ranges::count_if(roster.workers, [&](const Member& other) {
    return host_of(other) == host_of(worker) && other.cores_key == worker.cores_key;
  }));
}

std::string how_it_ended(const WaitStatus& status) {
  if (!status) return "it was killed or crashed";
  if (!WIFSIGNALED(*status))
    return fmt::format("it ended with exit code {} and without a word", WEXITSTATUS(*status));
  const char* const name = ::sigabbrev_np(WTERMSIG(*status));
  return fmt::format("it was killed by signal {} ({})", WTERMSIG(*status),
                     name == nullptr ? "unknown" : name);
}

Failure failure_from(const Error& error) {
  switch (error.code) {
    case Code::invalid_argument:
    case Code::not_found:
    case Code::not_provided:
      return {error.code, error.message, exit_code_configuration};
    case Code::refused:
      return {error.code, error.message, exit_code_refused};
    case Code::timeout:
      return {error.code, error.message, exit_code_timeout};
    case Code::peer_lost:
      return {error.code, error.message, exit_code_peer_lost};
    default:
      return {error.code, error.message, 1};
  }
}

}  // namespace muster::cluster
