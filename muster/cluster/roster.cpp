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

}  // namespace muster::cluster
