// What to start: the value between the presets, which translate flags and environment into it, and the
// supervisor, which starts it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/cluster/cluster.h"

namespace muster::launch {

struct ProcessSpec {
  cluster::Role role = cluster::Role::worker;
  std::string label = {};                   // "worker 2": stands before its lines
  std::vector<std::string> arguments = {};  // the program first; it is searched in PATH as a shell does
  std::map<std::string, std::string> environment = {};  // set on top of the launcher's own variables
  std::string log_name = {};                            // its log's name in the folder of logs

  friend bool operator==(const ProcessSpec&, const ProcessSpec&) = default;
};

struct LaunchSpec {
  std::vector<ProcessSpec> processes = {};

  friend bool operator==(const LaunchSpec&, const LaunchSpec&) = default;
};

}  // namespace muster::launch
