// Stacks of this process: where its main thread is, in C++ and in the language above it, as text for people.
// Taken from inside, while it runs or hangs: no ptrace, no debugger, and nothing is set up before it is asked
// for.
#pragma once

#include <optional>
#include <string>

#include "muster/base/clock.h"

namespace muster {

// The interpreter that the process runs, if any. Set once; it lives until the process ends.
struct LanguageStacks {
  const char* name = "";  // "Python"
  // The stacks of all of its threads, the main one first. Nothing: it could not be interrupted within
  // `limit`.
  std::optional<std::string> (*ask)(Duration limit) = nullptr;
  // That of the main thread, written to a descriptor from a signal handler on that thread. It may be cut off.
  void (*write_main_thread)(int descriptor) = nullptr;
};
void set_language_stacks(const LanguageStacks* language);

inline constexpr std::size_t stacks_size_bytes_max = 30 << 10;

// Takes at most about two seconds, however the process hangs; a part that cannot be had is named with the
// reason. Never on the main thread. Calls of several threads come one after the other.
std::string take_stacks();

}  // namespace muster
