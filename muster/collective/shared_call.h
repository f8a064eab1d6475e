// The call that a rank is in, for the others of its host to look at whenever they like: also where they do
// not meet.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>

#include "muster/collective/call.h"
#include "muster/net/net.h"

namespace muster::collective {

// Zeroed memory is no call. One rank writes. The number goes first, as 0, and last: who has seen it twice has
// seen the rest of the same call.
class SharedCall {
 public:
  void store(const Call& call) {
    std::array<std::uint64_t, words> encoded;
    static_assert(sizeof(encoded) == sizeof(CallBytes));
    const CallBytes bytes = encode(call);
    std::memcpy(encoded.data(), bytes.data(), sizeof(encoded));
    words_[0].store(0, std::memory_order_relaxed);
    for (std::size_t i = 1; i < words; ++i) words_[i].store(encoded[i], std::memory_order_release);
    words_[0].store(encoded[0], std::memory_order_release);
  }
  // Nothing while there is none, or while another takes its place.
  std::optional<Call> load() const {
    std::array<std::uint64_t, words> seen;
    for (std::size_t i = 0; i < words; ++i) seen[i] = words_[i].load(std::memory_order_acquire);
    if (seen[0] == 0 || words_[0].load(std::memory_order_relaxed) != seen[0]) return {};
    CallBytes bytes;
    std::memcpy(bytes.data(), seen.data(), sizeof(seen));
    const auto call = decode_call(bytes);
    if (!call) return {};
    return *call;
  }

 private:
  static constexpr std::size_t words = 3;  // of which the first is the number
  std::atomic<std::uint64_t> words_[words];
};

}  // namespace muster::collective
