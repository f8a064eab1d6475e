#include "muster/launch/last_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/launch/held_traceback.h"

namespace muster::launch {
namespace {

// What Python writes between an exception and the one that came of it.
constexpr std::string_view while_handling =
    "During handling of the above exception, another exception occurred:";
constexpr std::string_view direct_cause =
    "The above exception was the direct cause of the following exception:";

bool is_indented(std::string_view line) {
  return line.empty() || line.front() == ' ' || line.front() == '\t';
}

}  // namespace

void LastLines::note_traceback(std::string_view line) {
  if (line.find(traceback_headline) != std::string_view::npos) {
    // Indented, it is a part of an exception group that has begun already.
    const bool goes_on =
        (state_ == State::behind && continues_) || (state_ == State::inside && is_indented(line));
    if (!goes_on) {
      traceback_size_ = 0;
      left_out_ = 0;
    }
    state_ = State::inside;
    continues_ = false;
    behind_ = 0;
    return;
  }
  if (state_ == State::inside && !is_indented(line)) {
    state_ = State::behind;
  } else if (state_ == State::behind) {
    continues_ = continues_ || line == while_handling || line == direct_cause;
    if (++behind_ >= lines_max) state_ = State::none;
  }
}

void LastLines::add(std::string_view line) {
  note_traceback(line);
  traceback_size_ = state_ == State::none ? 0 : traceback_size_ + 1;
  lines_.emplace_back(line.substr(0, line_size_max));
  const std::size_t wanted = std::max(lines_max, traceback_size_);
  while (lines_.size() > wanted) lines_.pop_front();
  if (traceback_size_ > traceback_lines_max) {
    const std::size_t first = lines_.size() - traceback_size_;
    lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(first + traceback_lines_max / 2));
    --traceback_size_;
    ++left_out_;
  }
}

std::vector<std::string> LastLines::lines() const {
  std::vector<std::string> result(lines_.begin(), lines_.end());
  if (left_out_ > 0 && traceback_size_ > traceback_lines_max / 2) {
    const std::size_t gap = lines_.size() - traceback_size_ + traceback_lines_max / 2;
    result.insert(result.begin() + static_cast<std::ptrdiff_t>(gap),
                  fmt::format("... {} lines are left out; the log has them ...", left_out_));
  }
  return result;
}

}  // namespace muster::launch
