#include "muster/cluster/scheduler/forming.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/cluster/scheduler/job.h"
#include "muster/cluster/scheduler/traits_check.h"

namespace muster::cluster {

Forming::Forming(Job& job) : Phase(job), announcements_(job.now), found_(job) {}

// --- who comes, and goes -----------------------------------------------------------------------------------

const Member* Forming::holder(const Member& member) const {
  const auto found = by_name_.find({member.role, member.node_id});
  if (found == by_name_.end()) return nullptr;
  const Peer& peer = job_.peers.at(found->second);
  return peer.has_left() ? nullptr : &peer.member;
}

bool Forming::has_room(Role role) const {
  const auto present = present_.find(role);
  return (present == present_.end() ? 0 : present->second) < job_.wanted(role);
}

// The reason, and who is absent: one of those may have been started with the wrong id.
std::string Forming::duplicate_id(const Member& holder) const {
  std::vector<std::uint32_t> absent;
  for (std::uint32_t rank = 0; rank < job_.wanted(holder.role); ++rank)
    if (!by_name_.contains({holder.role, fmt::format("{}", rank)})) absent.push_back(rank);
  if (absent.empty()) return Phase::duplicate_id(holder);
  const std::string_view noun = holder.role == Role::worker ? "rank" : "server";
  return fmt::format("{}; absent {} {}", Phase::duplicate_id(holder), absent.size() == 1 ? "is" : "are",
                     numbered(noun, absent));
}

std::optional<std::string> Forming::admit(PeerId id, Registrant registrant) {
  if (!has_room(registrant.member.role)) return Phase::admit(id, std::move(registrant));
  const Member& member = job_.accept(id, std::move(registrant)).member;
  order_.push_back(id);
  by_name_[{member.role, member.node_id}] = id;
  ++present_[member.role];
  job_.attempts.came(member);
  form_if_complete();
  return std::nullopt;
}

Verdict Forming::place(const Newcomer& newcomer) {
  const Member& member = newcomer.member;
  const auto taken = by_name_.find({member.role, member.node_id});
  if (taken != by_name_.end()) return job_.seating.contest(taken->second, newcomer);
  const auto reason = admit(newcomer.id, newcomer);
  return reason ? job_.seating.turn_away_once_sure(newcomer, *reason) : Verdict::decided;
}

void Forming::came_back(PeerId before, PeerId id, Peer& peer, const Message&) {
  std::ranges::replace(order_, before, id);
  by_name_[{peer.member.role, peer.member.node_id}] = id;
}

void Forming::done(PeerId, const Peer& peer) {
  job_.fail({Code::aborted, fmt::format("{} left before every process had come", describe(peer)),
             exit_code_peer_lost});
}

void Forming::died(PeerId id, Peer& peer, const std::string& how) {
  job_.attempts.gone(peer.member, how, job_.now);
  Phase::died(id, peer, how);
}

void Forming::forgotten(PeerId id, const Peer& peer) {
  if (std::erase(order_, id) == 0) return;
  --present_[peer.member.role];
  by_name_.erase({peer.member.role, peer.member.node_id});
}

// --- what is said meanwhile --------------------------------------------------------------------------------

FormingView Forming::view() const {
  FormingView view{
      .worker_num = job_.config.worker_num, .server_num = job_.config.server_num, .attempts = &job_.attempts};
  for (const PeerId id : order_)
    if (const Peer& peer = job_.peers.at(id); !peer.is_gone()) view.present.push_back(&peer.member);
  for (std::string& line : differences(job_)) view.differences.push_back("differs: " + line);
  return view;
}

std::string Forming::text() const {
  const FormingView seen = view();
  return attendance(seen) + forming_table(seen, job_.now);
}

std::string Forming::missing() const { return is_complete() ? "" : ": " + text(); }

TimePoint Forming::deadline() const {
  return std::min(job_.start + job_.config.topo_timeout, announcements_.due());
}

void Forming::check() {
  if (found_.waits() && is_complete()) return form_if_complete();
  if (job_.now >= job_.start + job_.config.topo_timeout)
    return job_.fail({Code::timeout,
                      fmt::format("the job is not complete after {:.3g} s (MS_TOPO_TIMEOUT)",
                                  in_seconds(job_.config.topo_timeout)),
                      exit_code_timeout});
  if (job_.now < announcements_.due()) return;
  if (!announcements_.says(forming_table(view(), std::nullopt), job_.now)) return;
  job_.tell_all<message::Waiting>(
      fmt::format("waiting since {:.3g} s: {}", in_seconds(job_.now - job_.start), text()));
}

// --- all are there -----------------------------------------------------------------------------------------

bool Forming::is_complete() const {
  const auto has_all = [&](Role role) {
    const auto present = present_.find(role);
    return (present == present_.end() ? 0 : present->second) == job_.wanted(role);
  };
  return has_all(Role::worker) && has_all(Role::server);
}

void Forming::form_if_complete() {
  if (!is_complete() || (job_.config.recovers && !found_.settle(order_))) return;
  auto roster = std::make_shared<Roster>();
  roster->epoch = job_.ledger.epoch;
  roster->job_id = job_.ledger.job_id;
  roster->seed = job_.ledger.seed;
  roster->workers = rank_members(Role::worker);
  roster->servers = rank_members(Role::server);
  roster->recovers = job_.config.recovers;
  roster->finished_calls = job_.ledger.finished_calls;
  if (!check_traits(job_)) return;
  job_.seats = Seats(*roster);
  for (const auto& [id, peer] : job_.peers) {
    Seat& seat = *job_.seats.find(peer.member.role, peer.member.rank);
    seat.peer = id;
    seat.key = peer.key;
  }
  job_.begin_epoch(std::move(roster));
  job_.log(log::Level::info,
           fmt::format("all {} workers and {} servers have come after {:.3g} s", job_.config.worker_num,
                       job_.config.server_num, in_seconds(job_.now - job_.start)));
}

// Ids that are ranks first, then who has found points of a free one, the others into the gaps in the order in
// which they came.
std::vector<Member> Forming::rank_members(Role role) {
  const std::uint32_t count = job_.wanted(role);
  std::vector<std::optional<PeerId>> places(count);
  std::vector<PeerId> others;
  for (const PeerId id : order_) {
    const Member& member = job_.peers.at(id).member;
    if (member.role != role) continue;
    if (const auto rank = rank_asked(member.node_id, count))
      places[*rank] = id;
    else
      others.push_back(id);
  }
  std::erase_if(others, [&](PeerId id) { return takes_rank_of_its_points(job_, id, places); });
  auto next = others.begin();
  std::vector<Member> members;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    Peer& peer = job_.peers.at(places[rank] ? *places[rank] : *next++);
    peer.member.rank = rank;
    peer.has_rank = true;
    members.push_back(peer.member);
  }
  return members;
}

}  // namespace muster::cluster
