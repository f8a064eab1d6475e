// Where code that is traced fails.
#pragma once

#include "muster/graph/placement.h"

namespace muster::graph {

// While it lives, where on this thread something failed first: an op or a cell that gave a failed value, or a
// placed scope that an exception of the front end left. Does not nest.
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
  friend void note_failure_here();

  int exceptions_;  // under way when it began
  bool has_failed_ = false;
  PlacementPtr first_;
};

// What is computed by the current placement has failed.
void note_failure_here();

}  // namespace muster::graph
