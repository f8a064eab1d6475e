// Jobs that this user runs on this host, as their processes' variables tell.
#pragma once

#include <optional>
#include <string>

#include "muster/net/net.h"

namespace muster::launch {

// The file of the token that `muster run` made for the job of this scheduler. None: no process of this user
// belongs to such a job here. Processes of other users are not believed, root's own included.
std::optional<std::string> token_file_of_own_job(const net::HostPort& scheduler);

}  // namespace muster::launch
