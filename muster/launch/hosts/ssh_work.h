// A job whose hosts this launcher reaches by ssh: what runs on each of them, and the agents there.
#pragma once

#include <string>
#include <vector>

#include "muster/launch/ports.h"
#include "muster/launch/presets/preset.h"
#include "muster/launch/supervisor.h"

namespace muster::launch {

struct SshWork {
  ReservedPorts ports = {};  // of this host, where it is one of the job's
  std::vector<HostWork> hosts = {};
};

// What does not depend on the host: `input.job` is the whole job, its `self` and the host's ports and folder
// are filled in for each. Connects, and reserves what the preset wants; within `keep`.
Result<SshWork> make_ssh_work(const Preset& preset, const PresetInput& input, int keeper_fd,
                              const Clock& clock);

}  // namespace muster::launch
