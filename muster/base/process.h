// Private to base: state that a process has once. The module has no other state that changes (ADR 27).
#pragma once

#include <spdlog/spdlog.h>

#include <atomic>
#include <thread>

#include "muster/base/stack_probe.h"
#include "muster/base/state_clock.h"
#include "muster/base/while_waiting.h"

namespace muster {

// What the thread that leads the job does while it waits. No other thread has a hook: who sets one takes it
// over.
struct WaitHook {
  std::atomic<std::thread::id> thread = {};
  std::atomic<WhileWaiting> look = nullptr;
};

// How the time of the thread that leads the job goes by.
struct ThreadClock {
  std::atomic<std::thread::id> thread = {};
  std::atomic<StateClock*> clock = nullptr;
};

struct Process {
  Process();

  spdlog::logger logger;
  WaitHook wait_hook;
  ThreadClock thread_clock;
  StackProbe stack_probe;
  std::atomic<unsigned> terminations = 0;  // signals that termination.h has taken
};

// Never destroyed: threads may log and wait while the process ends.
Process& process();

}  // namespace muster
