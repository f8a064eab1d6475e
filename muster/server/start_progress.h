// Start progress: how far a parameter server is that has much to read before it serves. Private to server.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "muster/base/base.h"

namespace muster::server {

// Tells of each few seconds; of what takes less, nothing.
class StartProgress {
 public:
  using Tell = std::function<void(const std::string&)>;
  // `what` as in "parameter server 0 has read": how much of `total_bytes` follows.
  StartProgress(std::string what, std::uint64_t total_bytes, Tell tell = log::warning,
                const Clock& clock = real_clock())
      : what_(std::move(what)),
        total_(total_bytes),
        tell_(std::move(tell)),
        clock_(clock),
        told_(clock.now()) {}

  // Any thread.
  void add(std::uint64_t bytes);

 private:
  std::string what_;
  std::uint64_t total_;
  Tell tell_;
  const Clock& clock_;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
  TimePoint told_;
};

}  // namespace muster::server
