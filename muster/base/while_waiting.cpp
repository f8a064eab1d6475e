#include "muster/base/while_waiting.h"

#include <thread>

#include "muster/base/process.h"

namespace muster {
namespace {

// Null on all other threads.
WhileWaiting hook_of_this_thread() {
  const WaitHook& hook = process().wait_hook;
  return hook.thread.load() == std::this_thread::get_id() ? hook.look.load() : nullptr;
}

}  // namespace

void set_while_waiting(WhileWaiting look) {
  WaitHook& hook = process().wait_hook;
  hook.look = nullptr;  // not the old one on this thread, between the two
  hook.thread = std::this_thread::get_id();
  hook.look = look;
}

bool looks_while_waiting() { return hook_of_this_thread() != nullptr; }

void look_while_waiting() {
  if (const WhileWaiting look = hook_of_this_thread()) look();
}

}  // namespace muster
