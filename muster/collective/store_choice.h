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

}  // namespace muster::collective
