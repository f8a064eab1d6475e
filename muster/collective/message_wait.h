// Wait of a message: its deadline, and what is served meanwhile.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <string>

#include "muster/base/base.h"
#include "muster/collective/message.h"
#include "muster/net/net.h"

namespace muster::collective {

struct MessageWait {
  const Clock& clock;
  TimePoint start;
  TimePoint deadline;
  const net::StopSignal* stop = nullptr;
  // Asked now and then: an error when the group has ended in a way that does not wake this wait.
  const std::function<Result<>()>& look;
};

// "message #3 from rank 1 to rank 0 (64 bytes) waited 0.5 s for rank 1".
inline Error too_late(const Message& message, const MessageWait& wait, const std::string& peer) {
  const std::chrono::duration<double> waited = wait.clock.now() - wait.start;
  return {Code::timeout, fmt::format("{} waited {:.3g} s for {}", to_string(message), waited.count(), peer)};
}

}  // namespace muster::collective
