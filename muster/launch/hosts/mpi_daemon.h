// The one command that the first host may start on another one through the job's own sshd: mpirun's daemon.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::launch {

struct DaemonStart {
  std::vector<std::string> words = {};                  // the program first
  std::map<std::string, std::string> environment = {};  // on top of the session's own
};

// Reads the text that mpirun hands to ssh as a shell would, as far as mpirun's texts go: orted or prted, by
// its name or in a folder of PATH, with arguments that are taken as they stand; before it assignments to the
// variables of an installation, for folders beside the daemon's. Anything else is an error that shows it.
Result<DaemonStart> daemon_start(std::string_view asked, const Environment& environment);

}  // namespace muster::launch
