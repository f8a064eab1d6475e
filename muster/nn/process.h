// Private to nn: state that a process has once. The module has no other state that changes (ADR 27).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "muster/nn/optimizer.h"
#include "muster/nn/place.h"

namespace muster::nn {

// How much of what lives is placed on each rank. Threads: any, since a cell may end on any.
class Census {
 public:
  // Counted until the answer is let go by all.
  std::shared_ptr<const void> enter(Placed kind, std::uint32_t rank);
  // 1 + the highest rank; 0: nothing is placed.
  std::uint32_t ranks(Placed kind);

 private:
  using Counts = std::map<std::uint32_t, std::size_t>;

  Counts& of(Placed kind) { return kind == Placed::cell ? cells_ : primitives_; }
  void leave(Placed kind, std::uint32_t rank);

  std::mutex mutex_;
  Counts cells_, primitives_;
};

// Primitives come and go while code is traced, so that none can be depended on by itself.
class AllPrimitives final : public graph::Versioned {
 public:
  std::uint64_t tree_version() const override { return version_; }
  std::string description() const override { return "the place of a primitive"; }
  void touch() { version_ = graph::next_version(); }

 private:
  std::uint64_t version_ = graph::next_version();
};

struct Process {
  Census census;
  AllPrimitives primitives;
  PlaceCheck place_check = nullptr;              // set before placing
  UpdateObserver update_observer = nullptr;      // set before training
  std::atomic<bool> updates_are_paused = false;  // any thread
  std::atomic<bool> told_of_bfloat16 = false;    // that this processor does not multiply it
};

// Never destroyed: cells and traces may outlive everything.
Process& process();

}  // namespace muster::nn
