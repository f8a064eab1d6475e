// Ranks of one host that share a core while others have none of them.
//
// Two ranks that wait for each other by turns on one core keep it busy between them, and the system, which
// sees two processes that both run, leaves them there: each call then costs several switches instead of a
// look at a line of memory. A rank that sees it often moves itself to a core without ranks, and may run
// anywhere again from then on. MPI's launchers bind processes for the same reason; a bound process would lose
// the other cores for its threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace muster::collective {

class CoreSharing {
 public:
  // Of a host with so many ranks: with more of them than cores there is nothing to do.
  explicit CoreSharing(std::size_t ranks_of_host);

  // Of a rank that has waited in vain for a while on `cpu`: whether a rank before it shares that, and for
  // each cpu, whether another rank is there. Any thread.
  template <class HasRank>
  void look(std::uint32_t cpu, bool is_shared, const HasRank& has_rank) {
    if (!is_possible_) return;
    if (!is_shared) return waits_.store(0, std::memory_order_relaxed);
    if (waits_.fetch_add(1, std::memory_order_relaxed) + 1 < waits_before_moving) return;
    waits_.store(0, std::memory_order_relaxed);
    move_from(cpu, has_rank);
  }

  bool is_possible() const { return is_possible_; }
  // Where this thread runs.
  static std::uint32_t own_cpu();

 private:
  static constexpr std::uint32_t waits_before_moving = 64;
  static void move_from(std::uint32_t cpu, const std::function<bool(std::uint32_t)>& has_rank);

  bool is_possible_;
  std::atomic<std::uint32_t> waits_{0};
};

}  // namespace muster::collective
