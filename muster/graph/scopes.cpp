#include "muster/graph/scopes.h"

#include <exception>
#include <utility>

#include "muster/graph/thread_state.h"

namespace muster::graph {

PlaceScope::PlaceScope(PlacementPtr placement)
    : outer_(std::exchange(thread_state().placement, std::move(placement))) {}

PlaceScope::~PlaceScope() {
  ThreadState& state = thread_state();
  FailureWatch* const watch = state.failure_watch;
  if (watch != nullptr && std::uncaught_exceptions() > watch->exceptions_) watch->note(state.placement);
  state.placement = std::move(outer_);
}

const PlacementPtr& current_placement() { return thread_state().placement; }

RecomputeScope::RecomputeScope() : outer_(thread_state().recompute) {
  ThreadState& state = thread_state();
  if (outer_ == 0) state.recompute = ++state.recompute_scopes;
}
RecomputeScope::~RecomputeScope() { thread_state().recompute = outer_; }
std::uint32_t current_recompute() { return thread_state().recompute; }

CellScope::CellScope(const Versioned& cell) : outer_(std::exchange(thread_state().cell, &cell)) {}
CellScope::~CellScope() { thread_state().cell = outer_; }

AtOnceScope::AtOnceScope()
    : trace_(std::exchange(thread_state().trace, nullptr)),
      tape_(std::exchange(thread_state().tape, nullptr)) {}

AtOnceScope::~AtOnceScope() {
  thread_state().trace = static_cast<Trace*>(trace_);
  thread_state().tape = static_cast<Tape::Scope*>(tape_);
}

FailureWatch::FailureWatch() : exceptions_(std::uncaught_exceptions()) {
  thread_state().failure_watch = this;
}
FailureWatch::~FailureWatch() { thread_state().failure_watch = nullptr; }

void FailureWatch::note(const PlacementPtr& left) {
  if (!std::exchange(has_failed_, true)) first_ = left;
}

}  // namespace muster::graph
