// Reason why a group ended, in memory that its ranks share. Zeroed memory is a reason that is not given yet.
//
// A rank can be killed at any place, also between two lines of this: that a rank has begun to give a reason
// is enough for the others to know that the group has ended.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "muster/base/base.h"

namespace muster::collective {

class SharedReason {
 public:
  // The first reason stays. Any thread.
  void give(const Error& reason) {
    if (claim()) write(reason);
  }
  // The two halves of that: whether no rank was first, and what the first rank does then.
  bool claim() {
    std::uint32_t expected = none;
    return state_.compare_exchange_strong(expected, claimed);
  }
  void write(const Error& reason) {
    const std::size_t size_bytes = std::min(reason.message.size(), sizeof(text_));
    std::memcpy(text_, reason.message.data(), size_bytes);
    size_ = static_cast<std::uint32_t>(size_bytes);
    code_ = static_cast<std::uint32_t>(reason.code);
    state_.store(given, std::memory_order_release);
  }

  // Whether a rank has at least begun to give a reason.
  bool is_claimed() const { return state_.load(std::memory_order_acquire) != none; }
  // To be asked once there is one. A rank that has begun is waited for, but not for long: it may be dead.
  Error get(const Clock& clock) const {
    const TimePoint last = clock.now() + writing_longest;
    while (state_.load(std::memory_order_acquire) != given) {
      if (clock.now() >= last)
        return {Code::peer_lost, "a rank of this host ended the group and was killed before it had said why"};
      ::sched_yield();
    }
    const std::size_t size_bytes = std::min<std::size_t>(size_, sizeof(text_));
    const bool known = code_ <= static_cast<std::uint32_t>(Code::internal);
    return {known ? static_cast<Code>(code_) : Code::aborted, std::string(text_, size_bytes)};
  }

 private:
  static constexpr std::uint32_t none = 0, claimed = 1, given = 2;
  static constexpr Duration writing_longest = std::chrono::milliseconds(100);

  std::atomic<std::uint32_t> state_;
  std::uint32_t code_;
  std::uint32_t size_;
  char text_[1024];
};

}  // namespace muster::collective
