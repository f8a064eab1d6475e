#include "muster/net/guests.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::net {

std::optional<Guests::Id> Guests::arrive(Id id, const std::string& ip, TimePoint now) {
  MUSTER_CHECK(guests_.empty() || id > guests_.rbegin()->first, "a guest's id is not new");
  std::optional<Id> leaves;
  if (guests_.size() >= limits_.count) {
    auto found = guests_.begin();
    if (const auto count = counts_.find(ip); count != counts_.end() && 2 * count->second > limits_.count)
      found = std::ranges::find_if(guests_, [&](const auto& entry) { return entry.second.ip == ip; });
    leaves = found->first;
    leave(*leaves);
  }
  guests_.emplace_hint(guests_.end(), id, Guest{.ip = ip, .deadline = now + limits_.time});
  ++counts_[ip];
  return leaves;
}

std::optional<Guests::Id> Guests::hold(Id id, std::size_t size_bytes) {
  return charge(id, size_bytes, &Guest::held_size_bytes, held_size_bytes_, limits_.held_size_bytes);
}

std::optional<Guests::Id> Guests::leave_unread(Id id, std::size_t size_bytes) {
  return charge(id, size_bytes, &Guest::unread_size_bytes, unread_size_bytes_, limits_.unread_size_bytes);
}

std::optional<Guests::Id> Guests::charge(Id id, std::size_t size_bytes, std::size_t Guest::*account,
                                         std::size_t& sum, std::size_t limit) {
  const auto found = guests_.find(id);
  if (found == guests_.end()) return std::nullopt;
  sum += size_bytes - std::exchange(found->second.*account, size_bytes);
  if (sum <= limit) return std::nullopt;
  const auto largest =
      std::ranges::max_element(guests_, {}, [account](const auto& entry) { return entry.second.*account; });
  const Id leaves = largest->first;
  leave(leaves);
  return leaves;
}

void Guests::leave(Id id) {
  const auto found = guests_.find(id);
  if (found == guests_.end()) return;
  held_size_bytes_ -= found->second.held_size_bytes;
  unread_size_bytes_ -= found->second.unread_size_bytes;
  const auto count = counts_.find(found->second.ip);
  if (--count->second == 0) counts_.erase(count);
  guests_.erase(found);
}

std::optional<Guests::Id> Guests::oldest() const {
  return guests_.empty() ? std::nullopt : std::optional(guests_.begin()->first);
}

std::vector<Guests::Id> Guests::overdue(TimePoint now) const {
  std::vector<Id> ids;
  for (const auto& [id, guest] : guests_) {
    if (guest.deadline > now) break;
    ids.push_back(id);
  }
  return ids;
}

TimePoint Guests::deadline() const {
  return guests_.empty() ? TimePoint::max() : guests_.begin()->second.deadline;
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
