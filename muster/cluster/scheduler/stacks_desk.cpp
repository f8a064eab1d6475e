#include "muster/cluster/scheduler/stacks_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "muster/cluster/fingerprint.h"
#include "muster/cluster/scheduler/job.h"
#include "muster/cluster/scheduler/status.h"
#include "muster/cluster/wire.h"

namespace muster::cluster {
namespace {

constexpr Duration answer_limit = std::chrono::milliseconds(3500);  // an observer may stay a little longer
constexpr std::size_t askings_max = 16;

// Why a process cannot be asked; empty: it can.
std::string reason_not_to_ask(const Peer& peer) {
  if (peer.has_left()) return "it has left the job";
  if (!peer.is_connected()) return "its connection to the scheduler is lost";
  const std::string version = version_in(peer.traits);
  if (version != own_version())
    return fmt::format("it runs Muster {}, and this scheduler {}: both have to be of one version",
                       version.empty() ? "of an unknown version" : version, own_version());
  return {};
}

std::string late_text(const Job& job, const Peer& peer) {
  return fmt::format(
      "it has not answered for {:.2g} s, and its last heartbeat is {:.2g} s old: it is stopped, "
      "or its host has no time for it",
      in_seconds(answer_limit), in_seconds(silence_of(job, peer)));
}

std::string ranks_there_are(const Job& job, Role role) {
  const std::uint32_t count = job.wanted(role);
  return count == 0   ? "it has none"
         : count == 1 ? "it has 0 alone"
                      : fmt::format("it has 0 to {}", count - 1);
}

}  // namespace

void StacksDesk::ask(PeerId observer, const message::StacksRequest& request) {
  if (askings_.size() >= askings_max || askings_.contains(observer))
    return turn_away(observer, "others are asking for stacks: try again in a few seconds");
  std::vector<std::pair<PeerId, const Peer*>> chosen;
  for (const auto& [id, peer] : job_.peers)
    if (request.rank ? peer.member.role == request.role && peer.has_rank && peer.member.rank == *request.rank
                     : !peer.has_left())
      chosen.emplace_back(id, &peer);
  if (chosen.empty() && request.rank) {
    const std::string what = fmt::format("{} {}", to_string(request.role), *request.rank);
    return turn_away(observer, *request.rank < job_.wanted(request.role)
                                   ? fmt::format("{} is not there now: it has not come yet, or is lost", what)
                                   : fmt::format("there is no {} in this job: {}", what,
                                                 ranks_there_are(job_, request.role)));
  }
  std::ranges::stable_sort(chosen, {}, [](const auto& each) {
    const Peer& peer = *each.second;
    return std::tuple(waits(peer.said.activity), peer.member.role, peer.member.rank);
  });
  Asking asking{.until = job_.now + answer_limit};
  if (chosen.size() > stacks_processes_max) {
    asking.left_out = static_cast<std::uint32_t>(chosen.size() - stacks_processes_max);
    chosen.resize(stacks_processes_max);
  }
  for (const auto& [id, peer] : chosen) {
    if (const std::string reason = reason_not_to_ask(*peer); !reason.empty()) {
      tell(observer, *peer, reason);
      continue;
    }
    asking.awaited.insert(id);
    job_.send(id, message::AskStacks{});
  }
  askings_[observer] = std::move(asking);
  end_if_done(observer);
}

void StacksDesk::turn_away(PeerId observer, const std::string& reason) {
  job_.send(observer, message::Refuse{{Code::not_found, reason, 1}});
  job_.close(observer);
}

void StacksDesk::answered(PeerId id, const message::Stacks& stacks) { settle(id, "", stacks.text); }

void StacksDesk::forget(PeerId id) {
  askings_.erase(id);
  settle(id, "its connection to the scheduler was lost meanwhile");
}

void StacksDesk::check() {
  std::set<PeerId> late;
  for (const auto& [observer, asking] : askings_)
    if (job_.now >= asking.until) late.insert(asking.awaited.begin(), asking.awaited.end());
  for (const PeerId id : late)
    settle(id, job_.peers.find(id) == nullptr ? "" : late_text(job_, job_.peers.at(id)));
}

void StacksDesk::keep_all() {
  const auto message = job_.message_of(message::AskStacks{.is_answered = false});
  for (const auto& [id, peer] : job_.peers)
    if (peer.member.role == Role::worker && reason_not_to_ask(peer).empty()) job_.share(id, message);
}

void StacksDesk::tell(PeerId observer, const Peer& peer, const std::string& problem,
                      const std::string& text) {
  job_.send(observer, message::ProcessStacks{.role = peer.member.role,
                                             .rank = peer.member.rank,
                                             .has_rank = peer.has_rank,
                                             .pid = peer.member.pid,
                                             .node_id = peer.member.node_id,
                                             .address = peer.member.address,
                                             .doing = to_string(peer.said.activity),
                                             .problem = problem,
                                             .text = text});
}

// For all who wait for this process.
void StacksDesk::settle(PeerId id, const std::string& problem, const std::string& text) {
  const Peer* const peer = job_.peers.find(id);
  std::vector<PeerId> told;
  for (auto& [observer, asking] : askings_) {
    if (asking.awaited.erase(id) == 0) continue;
    if (peer != nullptr) tell(observer, *peer, problem, text);
    told.push_back(observer);
  }
  for (const PeerId observer : told) end_if_done(observer);
}

void StacksDesk::end_if_done(PeerId observer) {
  const auto asking = askings_.find(observer);
  if (!asking->second.awaited.empty()) return;
  job_.send(observer, message::StacksEnd{.left_out = asking->second.left_out});
  askings_.erase(asking);
  job_.close(observer);
}

}  // namespace muster::cluster
