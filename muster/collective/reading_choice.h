// Choice between reading large pieces where they lie and passing them through slots: found by trying, since
// it depends on how fast the system looks up pages of other processes, and on how cores share caches.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "muster/base/base.h"
#include "muster/collective/call.h"

namespace muster::collective {

// Of one kind of call and one class of sizes. The first calls take both ways in turn; before the next one all
// ranks tell each other how long theirs took at best, and so choose alike.
class ReadingTrial {
 public:
  // Nanoseconds: through slots, by reading.
  using Times = std::array<std::uint64_t, 2>;

  // Short calls are disturbed more, and cost less.
  explicit ReadingTrial(std::size_t size_bytes)
      : calls_of_each_(size_bytes < (std::size_t{1} << 20) ? 8 : 3) {}

  bool reads() const { return decided_ ? reads_ : calls_ >= 2 * calls_of_each_ || calls_ % 2 == 1; }
  bool is_decided() const { return decided_; }
  // That the next call tells each rank's times, of which `decide` takes those of the slowest rank.
  bool is_due() const { return !decided_ && calls_ >= 2 * calls_of_each_; }
  const Times& best() const { return best_; }

  void record(bool reads, Duration took) {
    if (decided_ || is_due()) return;
    std::uint64_t& best = best_[reads ? 1 : 0];
    best = std::min(best, static_cast<std::uint64_t>(std::chrono::nanoseconds(took).count()));
    ++calls_;
  }
  void decide(const Times& slowest) {
    decided_ = true;
    reads_ = slowest[1] < slowest[0];
  }

 private:
  unsigned calls_of_each_;
  unsigned calls_ = 0;
  Times best_ = {UINT64_MAX, UINT64_MAX};
  bool decided_ = false;
  bool reads_ = false;
};

class ReadingChoice {
 public:
  ReadingTrial& of(CallKind kind, std::size_t size_bytes) {
    return trials_.try_emplace({kind, std::bit_width(size_bytes)}, size_bytes).first->second;
  }

 private:
  std::map<std::pair<CallKind, int>, ReadingTrial> trials_;
};

}  // namespace muster::collective
