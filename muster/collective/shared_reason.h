// Why a group ended, in memory that its ranks share. Zeroed memory is a reason that nobody has given yet.
#pragma once

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
  // Whether this was the first reason, which stays. Any thread; others may read it once they were told.
  bool give(const Error& reason) {
    if (taken_.exchange(1) != 0) return false;
    const std::size_t size_bytes = std::min(reason.message.size(), sizeof(text_));
    std::memcpy(text_, reason.message.data(), size_bytes);
    size_ = static_cast<std::uint32_t>(size_bytes);
    code_ = static_cast<std::uint32_t>(reason.code);
    return true;
  }
  Error get() const {
    const std::size_t size_bytes = std::min<std::size_t>(size_, sizeof(text_));
    const bool known = code_ <= static_cast<std::uint32_t>(Code::internal);
    return {known ? static_cast<Code>(code_) : Code::aborted, std::string(text_, size_bytes)};
  }

 private:
  std::atomic<std::uint32_t> taken_;
  std::uint32_t code_;
  std::uint32_t size_;
  char text_[1024];
};

}  // namespace muster::collective
