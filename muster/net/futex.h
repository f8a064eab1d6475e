// Sleeping on a word of memory that processes share.
#pragma once

#include <atomic>
#include <cstdint>

#include "muster/base/base.h"

namespace muster::net {

// Sleeps while `word` holds `expected`, at most `timeout`; may also return early for no reason.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout);
void futex_wake_all(std::atomic<std::uint32_t>& word);

}  // namespace muster::net
