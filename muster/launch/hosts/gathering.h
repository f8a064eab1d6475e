// Facts that a preset needs before it can say what to start: the programs and key of this host, and what all
// hosts tell each other where each runs the same line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/launch/hosts/rendezvous.h"
#include "muster/launch/presets/preset.h"

namespace muster::launch {

struct Gathering {
  std::map<std::string, std::string> programs = {};
  std::string user = {};
  std::vector<HostReport> hosts = {};           // empty where they did not meet
  std::unique_ptr<Rendezvous> rendezvous = {};  // null there too; else the lease of this host's processes

  // Adds it to what a preset is given.
  void tell(PresetInput& input) const;
};

// `ports` are those of this host; `run_folder` exists. May take as long as the last host needs to come, and
// says on standard error whom it waits for. It ends early when `keeper_fd` becomes readable.
struct GatheringOptions {
  const Clock& clock;  // borrowed as long as what is gathered lives
  std::vector<std::uint16_t> ports = {};
  std::string run_folder = {};
  int keeper_fd = -1;
};
Result<Gathering> gather(const Preset& preset, const JobSettings& job, const Environment& environment,
                         const GatheringOptions& options);

// Where the hosts meet: at --scheduler, else at the first host's name and --port, else at this port.
inline constexpr std::uint16_t rendezvous_port_default = 36665;
net::HostPort rendezvous_place(const JobSettings& job);

}  // namespace muster::launch
