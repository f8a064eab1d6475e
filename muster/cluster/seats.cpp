#include "muster/cluster/seats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace muster::cluster {
namespace {

constexpr std::size_t seats_shown_max = 8;

std::string when(const Seat& seat) {
  return seat.step == no_step ? "before it had reported a step" : fmt::format("at step {}", seat.step);
}

// "node 2", "server 0", or "worker 1" where a made id would say nothing to anyone.
std::string name_of(const Member& member) {
  if (!member.is_named) return fmt::format("{} {}", to_string(member.role), member.rank);
  if (member.role == Role::worker) return fmt::format("node {}", member.node_id);
  return fmt::format("{} {}", to_string(member.role), member.node_id);
}

std::string call_for(const Member& member) {
  return member.is_named ? fmt::format("MS_NODE_ID={}", member.node_id) : "the same variables";
}

}  // namespace

std::optional<std::uint32_t> rank_asked(std::string_view node_id, std::uint32_t count) {
  std::uint32_t rank = 0;
  const auto [end, error] = std::from_chars(node_id.data(), node_id.data() + node_id.size(), rank);
  if (error != std::errc{} || end != node_id.data() + node_id.size() || rank >= count) return std::nullopt;
  if (node_id.size() > 1 && node_id.front() == '0') return std::nullopt;
  return rank;
}

std::string taken_by(const Member& member) {
  return fmt::format("node id '{}' (MS_NODE_ID) is taken by a live {} at {}, pid {}", member.node_id,
                     to_string(member.role), member.address, member.pid);
}

std::string surplus(Role role, std::uint32_t count) {
  return fmt::format("surplus: the job has all of its {} {}s ({}); this one is not needed", count,
                     to_string(role), role == Role::worker ? "MS_WORKER_NUM" : "MS_SERVER_NUM");
}

Seats::Seats(const Roster& roster, const std::vector<ProcessKey>& keys) {
  for (const auto* members : {&roster.workers, &roster.servers})
    for (const Member& member : *members) seats_.push_back({.member = member});
  for (std::size_t i = 0; i < std::min(keys.size(), seats_.size()); ++i) seats_[i].key = keys[i];
}

Seats::Seats(std::uint32_t worker_num, std::uint32_t server_num) {
  const auto add = [&](Role role, std::uint32_t count) {
    for (std::uint32_t rank = 0; rank < count; ++rank) seats_.push_back(unknown(role, rank));
  };
  add(Role::worker, worker_num);
  add(Role::server, server_num);
}

Seat Seats::unknown(Role role, std::uint32_t rank) {
  return {.member = {.role = role, .node_id = fmt::format("{}", rank), .rank = rank}, .is_unknown = true};
}

std::size_t Seats::place(Role role, std::uint32_t rank) const {
  const auto is_it = [&](const Seat& seat) { return seat.member.role == role && seat.member.rank == rank; };
  return static_cast<std::size_t>(std::ranges::find_if(seats_, is_it) - seats_.begin());
}

Seat* Seats::find(Role role, std::uint32_t rank) {
  const std::size_t found = place(role, rank);
  return found < seats_.size() ? &seats_[found] : nullptr;
}

Seat* Seats::find(Role role, std::string_view node_id) {
  for (Seat& seat : seats_)
    if (seat.member.role == role && seat.member.node_id == node_id) return &seat;
  return nullptr;
}

Seat* Seats::find(const ProcessKey& key) {
  for (Seat& seat : seats_)
    if (seat.key == key) return &seat;
  return nullptr;
}

Seat* Seats::find_peer(PeerId peer) {
  for (Seat& seat : seats_)
    if (seat.peer == peer) return &seat;
  return nullptr;
}

Seat* Seats::find_unknown(Role role, std::uint32_t rank) {
  Seat* seat = find(role, rank);
  return seat != nullptr && seat->is_unknown ? seat : nullptr;
}

std::vector<const Seat*> Seats::vacant() const {
  std::vector<const Seat*> found;
  for (const Seat& seat : seats_)
    if (seat.is_vacant()) found.push_back(&seat);
  return found;
}

std::variant<Seat*, std::string> Seats::choose(const Member& member) {
  std::vector<Seat*> vacant;
  std::uint32_t count = 0;
  for (Seat& seat : seats_) {
    if (seat.member.role != member.role) continue;
    ++count;
    if (seat.is_vacant()) vacant.push_back(&seat);
  }
  if (Seat* own = find(member.role, member.node_id)) return own;
  if (vacant.empty()) return surplus(member.role, count);
  if (!member.is_named && vacant.size() == 1) return vacant.front();
  // The one that waits longest first.
  std::stable_sort(vacant.begin(), vacant.end(),
                   [](const Seat* a, const Seat* b) { return a->wait_until < b->wait_until; });
  std::vector<std::string> missing;
  for (Seat* seat : vacant) {
    const auto asked = rank_asked(member.node_id, count);
    const bool fits =
        !member.is_named || asked == seat->member.rank || (seat->is_unknown && !asked.has_value());
    if (!seat->member.is_named && fits) return seat;
    if (missing.size() < seats_shown_max) missing.push_back(name_of(seat->member));
  }
  return fmt::format("{} of the job's {}s are missing ({}): set MS_NODE_ID to the id of the one that this is",
                     vacant.size(), to_string(member.role), fmt::join(missing, ", "));
}

std::string Seats::waiting_text(std::uint64_t next_epoch) const {
  const auto missing = vacant();
  if (missing.empty()) return {};
  std::vector<std::string> names;
  std::vector<std::string> calls;
  for (const Seat* seat : missing) {
    if (names.size() == seats_shown_max) {
      names.push_back(fmt::format("{} more", missing.size() - seats_shown_max));
      calls.push_back("...");
      break;
    }
    names.push_back(fmt::format("{} ({} {})", name_of(seat->member), seat->how, when(*seat)));
    if (const auto call = call_for(seat->member); std::find(calls.begin(), calls.end(), call) == calls.end())
      calls.push_back(call);
  }
  return fmt::format("cluster epoch {}: waiting for {} - start {} again with {}", next_epoch,
                     fmt::join(names, ", "), missing.size() == 1 ? "it" : "them", fmt::join(calls, ", "));
}

std::vector<Member> Seats::members(Role role) const {
  std::vector<Member> members;
  for (const Seat& seat : seats_)
    if (seat.member.role == role) members.push_back(seat.member);
  return members;
}

std::vector<ProcessKey> Seats::keys() const {
  std::vector<ProcessKey> keys;
  for (const Seat& seat : seats_) keys.push_back(seat.key);
  return keys;
}

}  // namespace muster::cluster
