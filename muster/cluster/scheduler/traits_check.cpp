#include "muster/cluster/scheduler/traits_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/cluster/fingerprint.h"
#include "muster/cluster/scheduler/job.h"

namespace muster::cluster {
namespace {

std::vector<FingerprintSource> sources(const Job& job) {
  std::vector<FingerprintSource> sources;
  for (const auto& [id, peer] : job.peers) {
    const Member& member = peer.member;
    if (peer.is_gone()) continue;
    const auto number = peer.has_rank ? member.rank : rank_asked(member.node_id, job.wanted(member.role));
    if (member.role == Role::worker)
      sources.push_back({.rank = number, .name = "node " + member.node_id, .traits = &peer.traits});
    else
      sources.push_back({.name = "server " + (number ? fmt::format("{}", *number) : member.node_id),
                         .is_server = true,
                         .traits = &peer.traits});
  }
  return sources;
}

}  // namespace

bool is_strict(const Job& job) {
  return job.config.strict ||
         std::ranges::any_of(job.peers, [](const auto& entry) { return entry.second.strict; });
}

std::vector<std::string> differences(const Job& job) { return trait_differences(sources(job)); }

bool check_traits(Job& job) {
  const std::vector<std::string> lines = differences(job);
  if (lines.empty() || lines == job.differences_told) return true;
  job.differences_told = lines;
  const std::string text = fmt::format("the processes of this job differ: {}", fmt::join(lines, "; "));
  if (!is_strict(job)) {
    job.tell_all<message::Waiting>(text);
    return true;
  }
  job.fail({Code::invalid_argument, text + ". Make them alike, or unset MUSTER_STRICT to get a warning only",
            exit_code_configuration});
  return false;
}

std::optional<std::string> misfit(const Job& job, const Registrant& registrant) {
  if (!registrant.strict && !is_strict(job)) return std::nullopt;
  std::vector<FingerprintSource> all = sources(job);
  if (all.empty()) return std::nullopt;
  const std::vector<std::string> before = trait_differences(all);
  all.push_back({.name = "this process",
                 .is_server = registrant.member.role == Role::server,
                 .traits = &registrant.traits});
  const std::vector<std::string> lines = trait_differences(all);
  if (lines.size() <= before.size()) return std::nullopt;
  return fmt::format("it differs from the others (MUSTER_STRICT=1): {}", fmt::join(lines, "; "));
}

}  // namespace muster::cluster
