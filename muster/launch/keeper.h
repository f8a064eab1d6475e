// Two processes that watch each other, so that nothing they start outlives them: the one that the user sees
// keeps nothing but the lease, its child does the work. Whichever is killed, the other kills all descendants,
// however they moved between groups and sessions.
#pragma once

#include <functional>
#include <string>

namespace muster::launch {

// Runs `work` in a child and returns what it returns. `work` is given a descriptor that becomes readable when
// this process is gone. Signals that ask a program to end are passed on to the child; until it handles them
// itself they end it. Whoever waits in `work` before supervise() watches the descriptor too. Whichever of the
// two is left removes `run_folder` (run_folder.h), where one is named; `work` makes it. To be called by a
// process with one thread.
int keep(const std::function<int(int keeper_fd)>& work, const std::string& run_folder = {});

}  // namespace muster::launch
