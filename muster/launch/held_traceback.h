// A Python traceback that a process is writing. It is kept back until it is known whether the process ends
// with it: then it belongs into the report, once for all processes that failed alike.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::launch {

inline constexpr std::string_view traceback_headline = "Traceback (most recent call last):";

class HeldTraceback {
 public:
  // A process that goes on had handled the exception, and its lines are to be seen.
  static constexpr Duration hold_max = std::chrono::seconds(2);
  static constexpr std::size_t lines_max = 10'000;

  // Whether the line is kept: from the first one of a traceback on, all are.
  bool take(std::string_view line, TimePoint now);
  // When it has to be shown after all; nothing while there is none.
  std::optional<TimePoint> due() const;
  const std::vector<std::string>& lines() const { return lines_; }
  // They are the caller's, and nothing is kept.
  std::vector<std::string> release();

 private:
  std::vector<std::string> lines_;
  TimePoint since_{};
};

// The exception, where it is one that the failure of another process brings: "muster.JobAbortedError: worker
// 1 ...".
std::optional<std::string> other_failure(const std::vector<std::string>& traceback);
// It ends, or began, with the exception that Ctrl-C raises.
bool is_of_interrupt(const std::vector<std::string>& traceback);

}  // namespace muster::launch
