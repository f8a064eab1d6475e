#include "muster/train/void_step.h"

#include <atomic>

#include "muster/nn/nn.h"

namespace muster::train {
namespace {

// A plan may send on one thread while it receives on another.
std::atomic<Recovery*> body_of = nullptr;
std::atomic<bool> is_void = false;

}  // namespace

void begin_body(Recovery& recovery) { body_of = &recovery; }

bool end_body() {
  body_of = nullptr;
  nn::pause_updates(false);
  return is_void.exchange(false);
}

bool step_is_void() { return is_void; }

Result<> or_void(Result<> done) {
  Recovery* const recovery = body_of;
  if (done || recovery == nullptr || (!is_void && !recovery->lost_epoch(done.error()))) return done;
  if (!is_void.exchange(true)) {
    log::info(done.error().message);
    nn::pause_updates(true);
  }
  return {};
}

}  // namespace muster::train
