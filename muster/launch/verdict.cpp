#include "muster/launch/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>

#include "muster/cluster/cluster.h"
#include "muster/launch/process.h"

namespace muster::launch {
namespace {

constexpr std::size_t labels_max = 8;

// Lower: more likely the cause. A process that lost a peer ended because of another one; a scheduler that
// fails mostly reports what a worker did; a signal, or a host that is lost, hits from outside.
int rank_as_cause(const ProcessEnd& end) {
  if (!end.loss.empty() || WIFSIGNALED(*end.wait_status)) return 0;
  if (WEXITSTATUS(*end.wait_status) == cluster::exit_code_peer_lost) return 3;
  return end.role == "scheduler" ? 2 : 1;
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

std::size_t cause_among(const std::vector<ProcessEnd>& ends, const std::vector<std::size_t>& failed) {
  return *std::min_element(failed.begin(), failed.end(), [&](std::size_t a, std::size_t b) {
    return rank_as_cause(ends[a]) < rank_as_cause(ends[b]);
  });
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
  for (auto& [end, labels] : by_end) {
    const std::size_t count = labels.size();
    if (count > labels_max) {
      labels.resize(labels_max);
      labels.push_back(fmt::format("{} more", count - labels_max));
    }
    parts.push_back(fmt::format("{} {}", fmt::join(labels, ", "), end));
  }
  return fmt::format("how its processes ended: {}", fmt::join(parts, "; "));
}

std::string place_of(std::string_view label, std::string_view host) {
  return host.empty() ? std::string(label) : fmt::format("{} on host {}", label, host);
}

}  // namespace muster::launch
