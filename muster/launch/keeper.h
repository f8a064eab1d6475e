// Two processes that watch each other, so that nothing they start outlives them: the one that the user sees
// keeps nothing but the lease, its child does the work. Whichever is killed, the other kills all descendants,
// however they moved between groups and sessions.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "muster/base/base.h"

namespace muster::launch {

// Added to the time after which others take a host for lost: they do so first, and say why.
inline constexpr Duration stopped_margin = std::chrono::seconds(2);

struct KeeperOptions {
  const Clock& clock;           // borrowed
  std::string run_folder = {};  // run_folder.h; empty: there is none
  // How long the child may stand still (SIGSTOP): then it is killed, and all that it started. None: for ever.
  std::optional<Duration> stopped_max = {};
};

// Runs `work` in a child and returns what it returns. `work` is given a descriptor that becomes readable when
// this process is gone. Signals that ask a program to end are passed on to the child; until it handles them
// itself they end it. Ctrl-Z stops this process alone: the work goes on. What waits in `work` before
// supervise() watches the descriptor too. The last of the two removes the run folder, which `work` makes. To
// be called by a process with one thread.
int keep(const std::function<int(int keeper_fd)>& work, const KeeperOptions& options);

}  // namespace muster::launch
