#include "muster/cluster/roster.h"

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
