// Source line at which traced code fails.
#pragma once

#include "muster/graph/placement.h"

namespace muster::graph {

// While it lives, the first placed scope of this thread that an exception leaves. Does not nest.
class FailureWatch {
 public:
  FailureWatch();
  ~FailureWatch();
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

  // Null: nowhere, or where nothing is placed.
  const PlacementPtr& first() const { return first_; }

 private:
  friend class PlaceScope;
  void note(const PlacementPtr& left);

  int exceptions_;  // under way when it began
  bool has_failed_ = false;
  PlacementPtr first_;
};

}  // namespace muster::graph
