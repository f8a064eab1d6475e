#include "muster/train/written_parameters.h"

#include <algorithm>
#include <utility>

#include "muster/train/process.h"

namespace muster::train {

WrittenParameters::WrittenParameters(std::span<const graph::ParameterPtr> saved) {
  for (const graph::ParameterPtr& parameter : saved) saved_.insert(parameter.get());
}

WrittenParameters::~WrittenParameters() { rest(); }

void WrittenParameters::watch() {
  process().body.written = this;
  graph::set_write_observer(&note);
}

void WrittenParameters::rest() {
  if (process().body.written != this) return;
  graph::set_write_observer(nullptr);
  process().body.written = nullptr;
}

void WrittenParameters::note(graph::Parameter& written) {
  WrittenParameters* const watching = process().body.written;
  if (watching == nullptr) return;
  if (watching->saved_.contains(&written)) {
    watching->has_saved_ = true;
    return;
  }
  const std::lock_guard lock(watching->mutex_);
  watching->others_.push_back(written.weak_from_this());
}

// A parameter that a body made for itself is gone with it.
std::vector<graph::ParameterPtr> WrittenParameters::others() {
  const std::lock_guard lock(mutex_);
  std::vector<graph::ParameterPtr> there;
  for (const auto& each : std::exchange(others_, {}))
    if (graph::ParameterPtr parameter = each.lock(); parameter && !std::ranges::count(there, parameter))
      there.push_back(std::move(parameter));
  return there;
}

}  // namespace muster::train
