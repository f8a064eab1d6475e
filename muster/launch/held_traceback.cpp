#include "muster/launch/held_traceback.h"

#include <algorithm>
#include <utility>

namespace muster::launch {

bool HeldTraceback::take(std::string_view line, TimePoint now) {
  const bool begins = lines_.empty() && line.find(traceback_headline) != std::string_view::npos;
  if ((lines_.empty() && !begins) || lines_.size() >= lines_max) return false;
  if (begins) since_ = now;
  lines_.emplace_back(line);
  return true;
}

std::optional<TimePoint> HeldTraceback::due() const {
  if (lines_.empty()) return std::nullopt;
  return lines_.size() >= lines_max ? since_ : since_ + hold_max;
}

std::vector<std::string> HeldTraceback::release() { return std::exchange(lines_, {}); }

std::optional<std::string> other_failure(const std::vector<std::string>& traceback) {
  const auto found = std::find_if(traceback.begin(), traceback.end(), [](const std::string& line) {
    return line.starts_with("muster.JobAbortedError:") || line.starts_with("muster.PeerLostError:");
  });
  return found == traceback.end() ? std::nullopt : std::optional(*found);
}

bool is_of_interrupt(const std::vector<std::string>& traceback) {
  return std::any_of(traceback.begin(), traceback.end(),
                     [](const std::string& line) { return line.starts_with("KeyboardInterrupt"); });
}

}  // namespace muster::launch
