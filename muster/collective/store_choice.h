// Choice of store instructions for this machine: found by trying, since it depends on how its cores share
// caches.
#pragma once

#include <array>
#include <cstddef>

#include "muster/base/base.h"
#include "muster/collective/kernels.h"

namespace muster::collective {

// For each size class, the first calls try both kinds; the one with the fastest call stays. Either
// gives the same bits, and ranks may differ in their choice.
class StoreChoice {
 public:
  Stores next(std::size_t size_bytes);
  // Whether a time is still of use.
  bool is_trying(std::size_t size_bytes) const;
  // The time that a call with the stores from `next` spent moving bytes, without waiting for others.
  void record(std::size_t size_bytes, Duration busy);

 private:
  struct Class {
    unsigned calls = 0;
    std::array<Duration, 2> fastest = {Duration::max(), Duration::max()};  // by Stores
  };
  static std::size_t class_of(std::size_t size_bytes);
  static Stores choose(const Class& tried);

  static constexpr std::size_t class_count = 64;
  std::array<Class, class_count> classes_;  // by powers of two
};

// Adds the time from its construction to its destruction, if it is wanted: looking at the clock takes as long
// as half of a small call.
class Stopwatch {
 public:
  Stopwatch(const Clock& clock, Duration& total, bool is_wanted = true)
      : clock_(clock), total_(total), is_wanted_(is_wanted), start_(is_wanted ? clock.now() : TimePoint{}) {}
  ~Stopwatch() {
    if (is_wanted_) total_ += clock_.now() - start_;
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  const Clock& clock_;
  Duration& total_;
  const bool is_wanted_;
  TimePoint start_;
};

}  // namespace muster::collective
