#include "muster/graph/placement.h"

#include <exception>
#include <utility>

#include "muster/graph/failure_watch.h"

namespace muster::graph {
namespace {

thread_local PlacementPtr innermost;
thread_local FailureWatch* failure_watch = nullptr;

}  // namespace

PlaceScope::PlaceScope(PlacementPtr placement) : outer_(std::exchange(innermost, std::move(placement))) {}

PlaceScope::~PlaceScope() {
  if (failure_watch != nullptr && std::uncaught_exceptions() > failure_watch->exceptions_)
    failure_watch->note(innermost);
  innermost = std::move(outer_);
}

const PlacementPtr& current_placement() { return innermost; }

FailureWatch::FailureWatch() : exceptions_(std::uncaught_exceptions()) { failure_watch = this; }
FailureWatch::~FailureWatch() { failure_watch = nullptr; }

void FailureWatch::note(const PlacementPtr& left) {
  if (!std::exchange(has_failed_, true)) first_ = left;
}

}  // namespace muster::graph
