// Private to base: state that take_stacks() and its signal handler on the main thread share.
#pragma once

#include <signal.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "muster/base/stacks.h"

namespace muster {

struct StackProbe {
  enum class State : int { idle, armed, taking, done };

  std::mutex mutex;  // of those who take stacks
  std::atomic<const LanguageStacks*> language = nullptr;
  // Between the two; the rest belongs to the handler from armed to done.
  std::atomic<State> state = State::idle;
  std::array<void*, 96> frames = {};
  int frame_count = 0;
  std::uintptr_t interrupted_at = 0;
  int language_descriptor = -1;           // the language's stack is wanted there
  struct sigaction replaced_action = {};  // gets the signals that are not ours
};

}  // namespace muster
