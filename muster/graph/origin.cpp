#include "muster/graph/origin.h"

#include <memory>
#include <utility>

#include "muster/graph/thread_state.h"

namespace muster::graph {
namespace {

// Of the code that runs.
Origin origin_here() {
  const ThreadState& state = thread_state();
  Origin made;
  if (state.cell != nullptr) made.cell = state.cell->description();
  if (const auto line = process_state().anomaly_hooks.line) made.line = line();
  return made;
}

}  // namespace

void set_anomaly_detection(bool detects) { process_state().detects_anomalies = detects; }
bool detects_anomalies() { return process_state().detects_anomalies; }
void set_anomaly_hooks(const AnomalyHooks& hooks) { process_state().anomaly_hooks = hooks; }
const AnomalyHooks& anomaly_hooks() { return process_state().anomaly_hooks; }

Backward::Backward(OriginPtr forward, std::string_view passed)
    : forward_(std::move(forward)), passed_(passed), outer_(std::exchange(thread_state().backward, this)) {}
Backward::~Backward() { thread_state().backward = outer_; }

// A rule of one's own tells of its own lines.
OriginPtr Backward::origin() const {
  Origin made = forward_ == nullptr ? origin_here() : *forward_;
  made.passed = passed_;
  made.is_backward = true;
  return std::make_shared<const Origin>(std::move(made));
}

OriginPtr current_origin() {
  if (!process_state().detects_anomalies) return nullptr;
  const Backward* const backward = thread_state().backward;
  return backward == nullptr ? std::make_shared<const Origin>(origin_here()) : backward->origin();
}

}  // namespace muster::graph
