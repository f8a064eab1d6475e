// Fingerprint of a process: values that should be the same in every process of a job. The scheduler compares
// them as processes register, and names one that differs before the first step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/cluster/roster.h"

namespace muster::cluster {

// Of this process: Muster's version, the byte order, and the variables that can change results. Those that
// are not set are absent.
Traits traits_of(const Environment& environment);

// What the traits of a process say; empty: nothing.
std::string version_in(const Traits& traits);
std::string own_version();

struct FingerprintSource {
  std::optional<std::uint32_t> rank = {};
  std::string name = {};  // for people, where there is no rank
  bool is_server = false;
  const Traits* traits = nullptr;
};

// One line for each key that not all have alike: "OMP_NUM_THREADS is '4' at rank 3, '2' at ranks 0-2". What
// most have comes last. Servers are compared with workers but for variables of the environment, which may
// well be others there. Empty: all agree.
std::vector<std::string> trait_differences(const std::vector<FingerprintSource>& sources);

}  // namespace muster::cluster
