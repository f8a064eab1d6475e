#include "tests/sim/storage/book.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::train::sim {
namespace {

using Moment = PointId::Moment;

PointId end_of(std::uint64_t call) { return {.call = call, .moment = Moment::end}; }

// What a job has when it stands there: at a start no more than at the end before it.
std::optional<PointId> progress(const std::optional<PointId>& id) {
  if (!id || id->moment != Moment::start) return id;
  return id->call == 0 ? std::nullopt : std::optional(end_of(id->call - 1));
}

std::string text(const std::optional<PointId>& id) { return id ? to_string(*id) : "nothing"; }

}  // namespace

void Book::kept(std::size_t rank, const PointId& id, bool is_shared) {
  ranks_[rank].points[id] = is_shared;
  ranks_[rank].damaged.erase(id);
  if (id.moment == Moment::end) ranks_[rank].ends_ever[id.call] = is_shared;
}

// ---- What can be used -------------------------------------------------------------------------------------

// Of an end the record is enough where a later call has it on record too, or a point: that has the state.
bool Book::has(std::size_t rank, const PointId& id) const {
  const Rank& of = ranks_[rank];
  if (of.points.contains(id)) return true;
  const bool has_later = !of.points.empty() && of.points.rbegin()->first.call > id.call;
  return id.moment == Moment::end && of.records > id.call && (has_later || of.records > id.call + 1);
}

// The state in the last one is there only as a point.
bool Book::has_all_ends(std::size_t rank, std::uint64_t calls) const {
  return ranks_[rank].records >= calls && ranks_[rank].points.contains(end_of(calls - 1));
}

// Another worker takes it from this one only where it is this one's newest of the call.
bool Book::gives(std::size_t rank, const PointId& id) const {
  const auto& points = ranks_[rank].points;
  const auto found = points.find(id);
  if (found == points.end() || !found->second) return false;
  const auto next = std::next(found);
  return next == points.end() || next->first.call != id.call;
}

bool Book::is_usable(const PointId& id, const std::vector<bool>& can_read) const {
  if (id.call < finished_ && id.moment != Moment::end) return false;  // only the end counts
  bool one_gives = false;
  std::uint64_t records_max = 0;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!can_read[rank]) continue;
    one_gives = one_gives || gives(rank, id);
    records_max = std::max(records_max, ranks_[rank].records);
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!one_gives && !(can_read[rank] && has(rank, id))) return false;
    for (std::uint64_t call = 0; call < id.call; ++call) {
      const bool has_end = can_read[rank] && has(rank, end_of(call));
      if (!has_end && std::min(records_max, finished_) <= call) return false;
    }
  }
  return true;
}

std::optional<PointId> Book::newest_usable(const std::vector<bool>& can_read) const {
  std::set<PointId, std::greater<>> ids;
  for (const Rank& rank : ranks_)
    for (const auto& [id, is_shared] : rank.points) ids.insert(id);
  for (const PointId& id : ids)
    if (is_usable(id, can_read)) return id;
  return std::nullopt;
}

bool Book::is_damaged(const PointId& id) const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [&](const Rank& rank) { return rank.damaged.contains(id); });
}

// ---- What must hold ---------------------------------------------------------------------------------------

void Book::look(std::size_t rank, const std::vector<std::string>& names, std::uint64_t records,
                const std::optional<PointId>& common) {
  if (names.size() > names_max_)
    broken_(fmt::format("bounded growth: worker {} has {} files and folders", rank, names.size()));
  if (records < ranks_[rank].records)
    broken_(fmt::format("records stay: worker {} has those of {} calls, and had {}", rank, records,
                        ranks_[rank].records));
  ranks_[rank].records = records;
  std::set<PointId> there;
  for (const std::string& name : names)
    if (const auto id = checkpoint::point_of_folder(name)) there.insert(*id);
  std::vector<PointId> removed;
  for (const auto& [id, is_shared] : ranks_[rank].points)
    if (!there.contains(id)) removed.push_back(id);
  if (removed.empty()) return;
  // Nobody knows of a byte that has changed since: what lies before the point that all are known to have may
  // go; and while that one is kept, what lies behind it.
  if (common && (removed.back() < *common || (there.contains(*common) && is_damaged(*common)))) {
    for (const PointId& id : removed) ranks_[rank].points.erase(id);
    return;
  }
  const std::vector<bool> all(ranks_.size(), true);
  const auto before = newest_usable(all);
  for (const PointId& id : removed) ranks_[rank].points.erase(id);
  // What all have and nobody was told of may go.
  const auto after = newest_usable(all);
  if (progress(after) < std::min(progress(before), progress(common)))
    broken_(
        fmt::format("the last usable point stays: worker {} has removed {}, and of {} only {} is left to "
                    "go on from ({} is known as common)",
                    rank, to_string(removed.back()), text(before), text(after), text(common)));
}

void Book::expect_finished(std::uint64_t calls) const {
  for (std::uint64_t call = 0; call < calls; ++call) {
    bool one_gives = false, all_have = true;
    for (const Rank& rank : ranks_) {
      const auto found = rank.ends_ever.lower_bound(call);  // a later one has all that was in it
      one_gives = one_gives || (found != rank.ends_ever.end() && found->second);
      all_have = all_have && found != rank.ends_ever.end();
    }
    if (!all_have && !one_gives)
      broken_(fmt::format("a call is finished when all have its end: call {} counts as finished", call));
  }
}

void Book::goes_to(const PointId& id, const std::optional<PointId>& floor) {
  // Whoever comes back to an earlier call first goes over its end.
  const auto at_least = floor && floor->call > id.call ? std::optional(end_of(id.call)) : floor;
  if (progress(id) < progress(at_least))
    broken_(fmt::format("nobody goes back further than what all have: all go to {}, and {} is usable",
                        to_string(id), text(floor)));
  // What is behind it belongs to a future that is lost: nobody has to keep it.
  for (Rank& rank : ranks_) rank.points.erase(rank.points.upper_bound(id), rank.points.end());
}

}  // namespace muster::train::sim
