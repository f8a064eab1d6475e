#include "muster/train/written_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "muster/train/front_end.h"
#include "muster/train/process.h"
#include "muster/train/updates.h"

namespace muster::train {
namespace {

// As a whole in the first steps, in which sums of gradients differ, and then now and again; no multiple of
// the steps after which sums begin anew. Between them a sample of each parameter.
constexpr std::int64_t first_steps = 8;
constexpr std::int64_t sampled_steps = 64;
constexpr std::int64_t steps_between = 61;

}  // namespace

WrittenParameters::WrittenParameters(std::span<const graph::ParameterPtr> saved,
                                     std::span<const nn::CellPtr> cells) {
  for (const graph::ParameterPtr& parameter : saved) saved_.insert(parameter.get());
  const auto note_optimizer = [&](const nn::Cell* cell) {
    const auto* const optimizer = dynamic_cast<const nn::Optimizer*>(cell);
    if (optimizer == nullptr) return;
    for (const graph::ParameterPtr& weight : optimizer->updated_parameters()) updated_.insert(weight.get());
    for (const graph::ParameterPtr& kept : optimizer->parameters()) updated_.insert(kept.get());
  };
  for (const nn::CellPtr& cell : cells) {
    if (cell == nullptr) continue;
    note_optimizer(cell.get());
    for (const auto& [path, below] : cell->descendants()) note_optimizer(below.get());
  }
}

WrittenParameters::~WrittenParameters() { rest(); }

void WrittenParameters::watch() {
  process().written = this;
  graph::set_write_observer(&note);
}

void WrittenParameters::rest() {
  if (process().written != this) return;
  graph::set_write_observer(nullptr);
  process().written = nullptr;
}

void WrittenParameters::note(graph::Parameter& written) {
  WrittenParameters* const watching = process().written;
  if (watching == nullptr) return;
  if (watching->saved_.contains(&written)) return watching->note_saved(written);
  const std::lock_guard lock(watching->mutex_);
  watching->others_.push_back(written.weak_from_this());
}

// Statistics say themselves that they are each worker's own.
void WrittenParameters::note_saved(graph::Parameter& written) {
  has_saved_ = true;
  if (updated_.contains(&written) || written.is_statistic()) return;
  const std::lock_guard lock(mutex_);
  graph::ParameterPtr parameter = written.shared_from_this();
  if (std::ranges::find(by_script_, parameter) == by_script_.end())
    by_script_.push_back(std::move(parameter));
}

// A parameter that a step made for itself is gone with it.
std::vector<graph::ParameterPtr> WrittenParameters::others() {
  const std::lock_guard lock(mutex_);
  std::vector<graph::ParameterPtr> there;
  for (const auto& each : std::exchange(others_, {}))
    if (graph::ParameterPtr parameter = each.lock();
        parameter && std::ranges::find(there, parameter) == there.end())
      there.push_back(std::move(parameter));
  return there;
}

std::uint64_t WrittenParameters::hash(std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  const bool as_a_whole = steps < first_steps || steps % steps_between == 0;
  if (by_script_.empty() || have_differed_ || (!as_a_whole && steps >= sampled_steps)) return 0;
  std::uint64_t hash = 1;
  for (const graph::ParameterPtr& each : by_script_)
    if (each->absence() == nullptr) {
      const Tensor& values = each->materialize(seed());
      hash =
          as_a_whole ? hash_bytes(values.bytes(), values.size_bytes(), hash) : hash_of_sample(values, hash);
    }
  return std::max<std::uint64_t>(hash, 1);
}

void WrittenParameters::note_compared(bool are_equal) {
  const std::lock_guard lock(mutex_);
  were_equal_ = are_equal;
  have_differed_ = have_differed_ || !are_equal;
}

std::string WrittenParameters::own() const {
  const std::lock_guard lock(mutex_);
  if (by_script_.empty() || (were_equal_ && !have_differed_)) return {};
  return fmt::format("'{}' is changed by the script, and may be each worker's own", by_script_[0]->name());
}

}  // namespace muster::train
