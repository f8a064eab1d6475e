#include "muster/launch/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <csignal>

#include "muster/cluster/cluster.h"
#include "muster/launch/process.h"

namespace muster::launch {
namespace {

constexpr std::size_t labels_max = 8;

// What comes before the reason of a failed job: the log's "muster[scheduler] error: ", or the name of an
// exception, "muster.JobAbortedError: ".
constexpr std::string_view before_reason = "rror: ";

// Whether a reason begins with the label of a process and says that this one failed or is gone. In `cluster`,
// describe(const Peer&) writes the name, "worker 1 (node '1' at 10.0.0.7, pid 4711)".
bool names(std::string_view reason, std::string_view label) {
  if (!reason.starts_with(label) || !reason.substr(label.size()).starts_with(" (node '")) return false;
  return reason.find(") failed: ") != std::string_view::npos ||
         reason.find(") is gone") != std::string_view::npos;
}

const ProcessEnd* named_in(std::string_view line, const std::vector<ProcessEnd>& ends) {
  const auto at = line.find(before_reason);
  if (at == std::string_view::npos) return nullptr;
  const std::string_view reason = line.substr(at + before_reason.size());
  const auto found =
      std::find_if(ends.begin(), ends.end(), [&](const ProcessEnd& end) { return names(reason, end.label); });
  return found == ends.end() ? nullptr : &*found;
}

// Lower: more likely the cause. Being killed, or losing the host, hits from outside. Else it is what the job
// itself names. Of those that nothing names, a process that lost a peer ended because of another one, and a
// scheduler that fails mostly reports what a worker did.
int rank_as_cause(const ProcessEnd& end, bool is_named) {
  const bool has_signal = end.loss.empty() && WIFSIGNALED(*end.wait_status);
  if (!end.loss.empty() || (has_signal && WTERMSIG(*end.wait_status) == SIGKILL)) return is_named ? 0 : 1;
  if (is_named) return 2;
  if (end.follows_another) return 6;
  if (has_signal) return 3;
  if (WEXITSTATUS(*end.wait_status) == cluster::exit_code_peer_lost) return 6;
  return end.role == "scheduler" ? 5 : 4;
}

void replace_all(std::string& text, std::string_view part, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += by.size())
    text.replace(at, part.size(), by);
}

std::string without_addresses(const std::string& text) {
  constexpr std::string_view mark = "0x";
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (!std::string_view(result).ends_with(mark)) continue;
    while (i + 1 < text.size() && std::isxdigit(static_cast<unsigned char>(text[i + 1])) != 0) ++i;
  }
  return result;
}

// Without what differs between processes that fail alike: "worker 2", "rank 2" of worker 2, and addresses.
std::string comparable_text(const std::string& label, const std::vector<std::string>& lines) {
  std::string text = without_addresses(fmt::format("{}", fmt::join(lines, "\n")));
  const std::string number = label.substr(label.rfind(' ') + 1);
  replace_all(text, label, "<label>");
  for (const char* const word : {"rank ", "Rank "}) replace_all(text, word + number, "<rank>");
  return text;
}

}  // namespace

std::string describe(const ProcessEnd& end) {
  if (!end.loss.empty()) return "was lost with its host";
  if (end.was_asked_to_end || !end.wait_status) return "ran on until asked to end";
  const std::string exit = describe_exit(*end.wait_status);
  return end.is_service ? exit + " before the work had ended" : exit;
}

int exit_code_of(const ProcessEnd& end) {
  if (!end.wait_status) return cluster::exit_code_peer_lost;
  return exit_code_of(*end.wait_status);
}

std::optional<std::string> named_culprit(const std::vector<ProcessEnd>& ends) {
  for (const ProcessEnd& end : ends)
    for (auto line = end.last_lines.rbegin(); line != end.last_lines.rend(); ++line)
      if (const ProcessEnd* named = named_in(*line, ends)) return named->label;
  return std::nullopt;
}

std::size_t cause_among(const std::vector<ProcessEnd>& ends, const std::vector<std::size_t>& failed) {
  const auto culprit = named_culprit(ends);
  const auto rank = [&](std::size_t i) { return rank_as_cause(ends[i], ends[i].label == culprit); };
  return *std::min_element(failed.begin(), failed.end(),
                           [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
}

std::string verdicts(const std::vector<ProcessEnd>& ends) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_end;
  for (const ProcessEnd& process : ends) {
    const std::string end = describe(process);
    auto found =
        std::find_if(by_end.begin(), by_end.end(), [&](const auto& entry) { return entry.first == end; });
    if (found == by_end.end()) found = by_end.insert(by_end.end(), {end, {}});
    found->second.push_back(process.label);
  }
  std::vector<std::string> parts;
  for (const auto& [end, labels] : by_end) parts.push_back(fmt::format("{} {}", joined_labels(labels), end));
  return fmt::format("how its processes ended: {}", fmt::join(parts, "; "));
}

std::string joined_labels(std::vector<std::string> labels) {
  const std::size_t count = labels.size();
  if (count > labels_max) {
    labels.resize(labels_max);
    labels.push_back(fmt::format("{} more", count - labels_max));
  }
  return fmt::format("{}", fmt::join(labels, ", "));
}

void add_failure(std::vector<FailedAlike>& failures, const std::string& label,
                 const std::vector<std::string>& lines) {
  const auto comparable = comparable_text(label, lines);
  for (FailedAlike& known : failures)
    if (comparable_text(known.labels.front(), known.lines) == comparable) {
      known.labels.push_back(label);
      return;
    }
  failures.push_back({.labels = {label}, .lines = lines});
}

std::string place_of(std::string_view label, std::string_view host) {
  return host.empty() ? std::string(label) : fmt::format("{} on host {}", label, host);
}

}  // namespace muster::launch
