// The preset behind `muster run`: processes on this host, alone or as one of several hosts that each run it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/launch/launch_spec.h"

namespace muster::launch {

struct LocalFlags {
  std::optional<std::int64_t> workers = {};   // on each host
  std::int64_t servers = 0;                   // in the whole job; the first host starts them
  std::int64_t node_count = 1;                // hosts that take part
  std::int64_t node_rank = 0;                 // which of them this is
  std::optional<std::string> scheduler = {};  // "host:port"
  std::optional<std::int64_t> port = {};      // of a scheduler on loopback
  std::int64_t max_restarts = 0;              // above 0: of each process, and the job recovers
  std::string recovery_folder = {};           // for max_restarts, unless MS_RECOVERY_PATH is set
  // Files as the processes can open them, empty: none.
  std::string tls_config = {};
  std::string client_password_file = {};
  std::string server_password_file = {};
  std::string token_file = {};
  std::vector<std::string> command = {};
};

// Checks the flags alone; true of flags whose scheduler still needs a free port of this host.
Result<bool> needs_port(const LocalFlags& flags);

// The processes of this host. `free_port` is used when the flags name no port. Starts nothing.
Result<LaunchSpec> local_spec(const LocalFlags& flags, const Environment& environment,
                              std::uint16_t free_port);

}  // namespace muster::launch
