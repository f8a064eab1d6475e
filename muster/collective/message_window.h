// Acknowledgement window of the messages from one rank to another, as both sides count it: the receiver
// acknowledges all so far, and the sender need not keep them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/collective/message.h"

namespace muster::collective {

class MessageWindow {
 public:
  // Whether an answer is due after this message.
  bool add(const Message& message) {
    size_bytes_ += message.size_bytes;
    if (++count_ < count_limit && size_bytes_ < size_limit_bytes) return false;
    *this = {};
    return true;
  }

 private:
  static constexpr std::uint64_t size_limit_bytes = 1 << 20;
  static constexpr std::uint64_t count_limit = 256;

  std::uint64_t size_bytes_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace muster::collective
