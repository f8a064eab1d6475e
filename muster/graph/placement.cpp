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
    note_failure_here();
  innermost = std::move(outer_);
}

const PlacementPtr& current_placement() { return innermost; }

FailureWatch::FailureWatch() : exceptions_(std::uncaught_exceptions()) { failure_watch = this; }
FailureWatch::~FailureWatch() { failure_watch = nullptr; }

void note_failure_here() {
  if (failure_watch == nullptr || std::exchange(failure_watch->has_failed_, true)) return;
  failure_watch->first_ = innermost;
}

}  // namespace muster::graph
