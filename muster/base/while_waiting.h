// Hook that a thread runs while it waits for others: Ctrl-C, where a language above keeps that for its main
// thread. A module that waits knows nothing of signals; the caller that installs the hook does.
#pragma once

#include <chrono>

#include "muster/base/clock.h"

namespace muster {

using WhileWaiting = void (*)();

// For the calling thread; null: nothing. To end the wait is its own work, for example by aborting what is
// waited for.
void set_while_waiting(WhileWaiting look);
// Whether the calling thread was told anything.
bool looks_while_waiting();
// To be called about every `wait_slice` by the thread that waits.
void look_while_waiting();

inline constexpr Duration wait_slice = std::chrono::milliseconds(100);

}  // namespace muster
