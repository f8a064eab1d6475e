#include "muster/base/while_waiting.h"

namespace muster {
namespace {

thread_local WhileWaiting while_waiting = nullptr;

}  // namespace

void set_while_waiting(WhileWaiting look) { while_waiting = look; }
bool looks_while_waiting() { return while_waiting != nullptr; }

void look_while_waiting() {
  if (while_waiting != nullptr) while_waiting();
}

}  // namespace muster
