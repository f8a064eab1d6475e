#include "muster/net/unauthenticated_peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "muster/net/descriptor_limit.h"
#include "muster/net/process.h"

namespace muster::net {
namespace {

// Members are unauthenticated peers first, so there must be some places even where members may need all
// descriptors.
constexpr std::size_t least = 4, least_of_many = 64;

}  // namespace

std::optional<UnauthenticatedPeers::Id> UnauthenticatedPeers::arrive(Id id, const std::string& ip,
                                                                     TimePoint now) {
  MUSTER_CHECK(unauthenticated_.empty() || id > unauthenticated_.rbegin()->first,
               "an unauthenticated peer's id is not new");
  std::optional<Id> leaves;
  if (unauthenticated_.size() >= limits_.count) {
    const auto count = counts_.find(ip);
    const bool is_flood = count != counts_.end() && 2 * count->second > limits_.count;
    leaves = is_flood ? oldest_of(ip) : unauthenticated_.begin()->first;
    leave(*leaves);
  }
  UnauthenticatedPeer& peer = unauthenticated_[id];
  peer.ip = ip;
  peer.came = now;
  set_deadline(id, peer, now + limits_.time);
  ++counts_[ip];
  return leaves;
}

void UnauthenticatedPeers::expect_handshake(Id id, TimePoint now) {
  if (const auto found = unauthenticated_.find(id); found != unauthenticated_.end())
    set_deadline(id, found->second, std::min(found->second.deadline, now + limits_.handshake_time));
}

void UnauthenticatedPeers::secured(Id id) {
  if (const auto found = unauthenticated_.find(id); found != unauthenticated_.end())
    set_deadline(id, found->second, found->second.came + limits_.time);
}

void UnauthenticatedPeers::set_deadline(Id id, UnauthenticatedPeer& peer, TimePoint deadline) {
  deadlines_.erase({peer.deadline, id});
  deadlines_.emplace(deadline, id);
  peer.deadline = deadline;
}

std::optional<UnauthenticatedPeers::Id> UnauthenticatedPeers::hold(Id id, std::size_t size_bytes) {
  return charge(id, size_bytes, &UnauthenticatedPeer::held_size_bytes, held_size_bytes_,
                limits_.held_size_bytes);
}

std::optional<UnauthenticatedPeers::Id> UnauthenticatedPeers::leave_unread(Id id, std::size_t size_bytes) {
  return charge(id, size_bytes, &UnauthenticatedPeer::unread_size_bytes, unread_size_bytes_,
                limits_.unread_size_bytes);
}

std::optional<UnauthenticatedPeers::Id> UnauthenticatedPeers::charge(
    Id id, std::size_t size_bytes, std::size_t UnauthenticatedPeer::*account, std::size_t& sum,
    std::size_t limit) {
  const auto found = unauthenticated_.find(id);
  if (found == unauthenticated_.end()) return std::nullopt;
  sum += size_bytes - std::exchange(found->second.*account, size_bytes);
  if (sum <= limit) return std::nullopt;
  const auto largest = std::ranges::max_element(
      unauthenticated_, {}, [account](const auto& entry) { return entry.second.*account; });
  const Id leaves = largest->first;
  leave(leaves);
  return leaves;
}

void UnauthenticatedPeers::leave(Id id) {
  const auto found = unauthenticated_.find(id);
  if (found == unauthenticated_.end()) return;
  held_size_bytes_ -= found->second.held_size_bytes;
  unread_size_bytes_ -= found->second.unread_size_bytes;
  deadlines_.erase({found->second.deadline, id});
  const auto count = counts_.find(found->second.ip);
  if (--count->second == 0) counts_.erase(count);
  unauthenticated_.erase(found);
}

UnauthenticatedPeers::Id UnauthenticatedPeers::oldest_of(const std::string& ip) const {
  return std::ranges::find_if(unauthenticated_, [&](const auto& entry) { return entry.second.ip == ip; })
      ->first;
}

std::optional<UnauthenticatedPeers::Id> UnauthenticatedPeers::first_to_go(TimePoint now) const {
  if (unauthenticated_.empty()) return std::nullopt;
  const auto most = std::ranges::max_element(counts_, {}, [](const auto& entry) { return entry.second; });
  const Id first =
      2 * most->second > unauthenticated_.size() ? oldest_of(most->first) : unauthenticated_.begin()->first;
  return unauthenticated_.at(first).came + limits_.time_least <= now ? std::optional(first) : std::nullopt;
}

std::vector<UnauthenticatedPeers::Id> UnauthenticatedPeers::overdue(TimePoint now) const {
  std::vector<Id> ids;
  for (const auto& [deadline, id] : deadlines_) {
    if (deadline > now) break;
    ids.push_back(id);
  }
  return ids;
}

TimePoint UnauthenticatedPeers::deadline() const {
  return deadlines_.empty() ? TimePoint::max() : deadlines_.begin()->first;
}

UnauthenticatedSlots::UnauthenticatedSlots(std::size_t most, std::size_t members) : count_(0) {
  const std::size_t free = free_descriptors();
  const std::size_t of_all_unauthenticated = (free - std::min(free, members)) / 2;
  UnauthenticatedPlaces& places = process().unauthenticated_places;
  const std::lock_guard lock(places.mutex);
  const std::size_t left = of_all_unauthenticated - std::min(of_all_unauthenticated, places.taken);
  const std::size_t free_to_all = free - std::min(free, places.taken);
  count_ = std::min(most, std::max(left / 2, std::clamp(free_to_all / 8, least, least_of_many)));
  places.taken += count_;
}

UnauthenticatedSlots::~UnauthenticatedSlots() {
  UnauthenticatedPlaces& places = process().unauthenticated_places;
  const std::lock_guard lock(places.mutex);
  places.taken -= count_;
}

std::optional<std::string> LineLimit::take(TimePoint now) {
  if (!begin_ || now - *begin_ >= period_) {
    begin_ = now;
    written_ = 0;
  }
  if (written_ >= lines_) {
    ++left_out_;
    return std::nullopt;
  }
  ++written_;
  const auto left_out = std::exchange(left_out_, 0);
  return left_out == 0 ? "" : fmt::format(" (and {} more of this kind before, not shown)", left_out);
}

}  // namespace muster::net
