#include "muster/cluster/stuck_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace muster::cluster {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration limit_at_first = minutes(5);  // of who compiles, reads much, or waits for such a one
constexpr Duration limit_min = seconds(10);
constexpr Duration limit_min_script = seconds(30);  // the user's own code between steps may do anything
constexpr Duration limit_min_saving = seconds(60);  // disks, and whole evaluations by hand
constexpr Duration limit_min_again = seconds(60);   // of first steps, behind a recovery
constexpr int usual_times = 20;
constexpr std::uint64_t steps_known = 5;
constexpr std::size_t gaps_kept = 32;
// A stall that resolves itself is treated as normal, and the threshold is doubled, up to this.
constexpr Duration limit_from_pauses_max = minutes(5);

}  // namespace

void StuckWatch::begin(TimePoint now) {
  last_ = now;
  is_told_ = false;
  most_.reset();
  had_steps_ = had_steps_ || steps_ > 0;
  steps_ = 0;
  last_most_.reset();
}

std::optional<Duration> StuckWatch::moved(const Mark& before, const Mark& mark, TimePoint now) {
  if (mark == before) return std::nullopt;
  const Duration pause = now - std::exchange(last_, now);
  if (steps_ < steps_known) longest_first_ = std::max(longest_first_, pause);
  // Another training counts from below again.
  if (!most_ || mark.steps < before.steps) most_ = mark.steps < before.steps ? mark : before;
  if (mark.steps > most_->steps) {
    if (last_most_ && steps_ >= steps_known) {
      gaps_.push_back(now - *last_most_);
      longest_ = std::max(longest_, gaps_.back());
      if (gaps_.size() > gaps_kept) gaps_.pop_front();
    }
    steps_ += mark.steps - most_->steps;
    last_most_ = now;
    most_->steps = mark.steps;
  }
  return std::exchange(is_told_, false) ? std::optional(pause) : std::nullopt;
}

std::optional<Duration> StuckWatch::usual() const {
  if (gaps_.empty()) return std::nullopt;
  std::vector<Duration> sorted(gaps_.begin(), gaps_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

// Behind a recovery the first steps are made as before: the job has shown how long those may take.
Duration StuckWatch::limit_of_first_steps(Duration least_again) const {
  return std::max(had_steps_ ? least_again : limit_at_first, 2 * longest_first_);
}

Duration StuckWatch::limit(WorkPhase phase) const {
  if (chosen_ && chosen_->count() == 0) return Duration::max();
  if (chosen_) return steps_ > 0 ? *chosen_ : std::max(*chosen_, limit_of_first_steps(*chosen_));
  const auto usual_gap = usual();
  if (!usual_gap) return limit_of_first_steps(limit_at_first);
  if (steps_ < steps_known || phase == WorkPhase::starting)
    return limit_of_first_steps(std::max(limit_min_again, usual_times * *usual_gap));
  const Duration least = phase == WorkPhase::script                                     ? limit_min_script
                         : phase == WorkPhase::saving || phase == WorkPhase::evaluating ? limit_min_saving
                                                                                        : limit_min;
  return std::max({least, usual_times * *usual_gap, std::min(2 * longest_, limit_from_pauses_max)});
}

bool StuckWatch::is_due(WorkPhase phase, TimePoint now) {
  const Duration so_far = pause(now);
  if (so_far < limit(phase) || (is_told_ && now < next_told_)) return false;
  is_told_ = true;
  next_told_ = now + so_far;
  return true;
}

}  // namespace muster::cluster
