#include "muster/launch/failure_report.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace muster::launch {
namespace {

void say(Console& console, std::string_view text) {
  console.line(Stream::error, {}, fmt::format("muster: {}", text));
}

// Other tracebacks than the cause's: equal ones once, and of those that it brought the exception alone.
void show_failures_beside(std::size_t cause, const std::vector<ProcessEnd>& ends,
                          const std::vector<std::size_t>& failed, const Outputs& outputs, Console& console) {
  std::vector<FailedAlike> failures;
  if (!outputs.held(cause).empty()) add_failure(failures, ends[cause].label, outputs.held(cause));
  const bool has_cause = !failures.empty();
  for (const std::size_t index : failed)
    if (index != cause && !outputs.held(index).empty())
      add_failure(failures, ends[index].label, outputs.held(index));
  for (std::size_t i = 0; i < failures.size(); ++i) {
    std::vector<std::string> labels = failures[i].labels;
    if (i == 0 && has_cause) {
      labels.erase(labels.begin());
      if (!labels.empty())
        say(console, fmt::format("{} failed the same way as {}", joined_labels(labels), ends[cause].label));
    } else if (const auto other = other_failure(failures[i].lines)) {
      say(console, fmt::format("{}: {}", joined_labels(labels), *other));
    } else {
      say(console, fmt::format("{} failed in another way:", joined_labels(labels)));
      for (const std::string& line : failures[i].lines)
        console.line(Stream::error, failures[i].labels.front(), line);
    }
  }
}

}  // namespace

int report_failure(const std::vector<ProcessEnd>& ends, const std::vector<std::size_t>& failed,
                   Outputs& outputs, Console& console) {
  const std::size_t cause = cause_among(ends, failed);
  if (ends.size() > 1) say(console, verdicts(ends));
  show_failures_beside(cause, ends, failed, outputs, console);
  const std::vector<std::string> lines = outputs.last_lines(cause);
  say(console, fmt::format("the job failed: {} {}{}", place_of(ends[cause].label, ends[cause].host),
                           describe(ends[cause]), lines.empty() ? "" : "; its last lines:"));
  outputs.show(cause, lines);
  if (!ends[cause].loss.empty()) say(console, fmt::format("host {}: {}", ends[cause].host, ends[cause].loss));
  return exit_code_of(ends[cause]);
}

}  // namespace muster::launch
