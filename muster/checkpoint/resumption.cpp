#include "muster/checkpoint/resumption.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace muster::checkpoint {
namespace {

using State = Standing::State;
using Way = Resumption::Way;
using Rows = std::span<const Standing>;
using Sources = std::vector<std::optional<std::uint32_t>>;

bool lives(const Standing& row) { return row.state == State::live || row.state == State::committing; }

PointId start_of(std::uint64_t call) { return {.call = call}; }

const HeldPoint* find(const Standing& row, const PointId& id) {
  const auto found = std::find_if(row.points.begin(), row.points.end(),
                                  [&](const HeldPoint& point) { return point.id == id; });
  return found == row.points.end() ? nullptr : &*found;
}

// Gives each rank that `has` is false of one of its stage that `gives` is true of, in turn, so that several
// do not all wait for the same one. Nothing when there is none for some worker.
template <class Has, class Gives>
std::optional<Sources> match(Rows rows, const Has& has, const Gives& gives) {
  Sources sources(rows.size());
  std::size_t turn = 0;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    if (has(rows[rank])) continue;
    for (std::size_t i = 0; i < rows.size() && !sources[rank]; ++i) {
      const std::size_t other = (turn + i) % rows.size();
      if (other == rank || rows[other].stage != rows[rank].stage || !gives(rows[other])) continue;
      sources[rank] = static_cast<std::uint32_t>(other);
      turn = other + 1;
    }
    if (!sources[rank]) return std::nullopt;
  }
  return sources;
}

std::string list(const std::vector<std::size_t>& ranks) {
  return fmt::format("worker{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

// ---- Calls that are over for others -----------------------------------------------------------------------

// Who has kept the end of a call that is over for all gives it, whosesoever the state in it is; of a call
// that is not, only one from which others can go on.
bool gives_end(const Standing& row, const Standing& to) {
  const bool has_kept = to.state == State::behind && row.finished > to.call;
  return row.stage == to.stage && (has_kept || (row.call > to.call && row.gives_ends_from <= to.call));
}

Resumption catch_up(Rows rows, std::uint64_t newest) {
  Sources sources(rows.size());
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    const Standing& row = rows[rank];
    // A worker that has the end of its call is on its way here.
    if (row.call == newest || row.has_end || row.state == State::between) continue;
    const auto other =
        std::find_if(rows.begin(), rows.end(), [&](const Standing& giver) { return gives_end(giver, row); });
    if (other != rows.end()) {
      sources[rank] = static_cast<std::uint32_t>(other - rows.begin());
      continue;
    }
    const bool is_over = row.state == State::behind;
    return {.way = is_over ? Way::lost : Way::back,
            .id = {.call = row.call, .moment = PointId::Moment::end},
            .reason = fmt::format("worker {} lacks the end of call {} of the script, which {}, and no "
                                  "other worker has it",
                                  rank, row.call,
                                  is_over ? "the others have finished" : "no disk of its own had taken yet")};
  }
  const bool one_takes =
      std::any_of(sources.begin(), sources.end(), [](const auto& source) { return source; });
  if (!one_takes) return {.id = {.call = newest}};
  return {.way = Way::end_of, .sources = std::move(sources)};
}

// ---- What is in memory ------------------------------------------------------------------------------------

// Nothing: what is in memory is no way on; `reason` says why.
std::optional<Resumption> from_memory(Rows rows, std::string& reason) {
  std::uint64_t top = 0;
  bool all_have_all = true;  // that live
  for (const Standing& row : rows)
    if (lives(row)) top = std::max(top, row.steps);
  for (const Standing& row : rows)
    if (lives(row)) all_have_all = all_have_all && (row.steps < top || row.state == State::committing);
  // A worker that is one step back has all that the step needs, or none could be past it. And where all have
  // all of it, it is done.
  std::vector<bool> commits(rows.size(), false);
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    const Standing& row = rows[rank];
    if (!lives(row)) continue;
    if (row.steps < top && (row.state != State::committing || row.steps + 1 != top)) {
      reason = fmt::format("worker {} stands behind step {}, others behind step {}", rank, row.steps, top);
      return std::nullopt;
    }
    commits[rank] = row.state == State::committing && (row.steps < top || all_have_all);
  }
  if (std::find(commits.begin(), commits.end(), true) != commits.end())
    return Resumption{.way = Way::ask_again, .commits = std::move(commits)};
  auto sources = match(rows, lives, [](const Standing& row) { return lives(row) && row.is_shared; });
  if (!sources) {
    std::vector<std::size_t> lacking;
    for (std::size_t rank = 0; rank < rows.size(); ++rank)
      if (!lives(rows[rank])) lacking.push_back(rank);
    reason = fmt::format("{} had state of {} own, which no other worker has", list(lacking),
                         lacking.size() == 1 ? "its" : "their");
    return std::nullopt;
  }
  // Moving statistics are written anywhere in a step: those of one that is made again would be written twice.
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    if (rows[rank].state == State::committing && !rows[rank].is_shared) {
      reason = fmt::format("worker {} has state of its own, which step {} may have changed", rank, top + 1);
      return std::nullopt;
    }
  return Resumption{.way = Way::live, .steps = top, .sources = *std::move(sources)};
}

// ---- Points -----------------------------------------------------------------------------------------------

// What is in the memory of those who are fresh is the start, as long as nothing behind it was promised. Who
// may have lost its folder does not know; then it is enough that a worker is behind the start.
bool may_begin(Rows rows) {
  bool one_knows = false, one_may_have_lost = false, one_has_more = false;
  for (const Standing& row : rows) {
    one_knows = one_knows || row.knows_common;
    one_may_have_lost = one_may_have_lost || (row.state == State::fresh && row.may_have_lost);
    one_has_more = one_has_more || (!row.points.empty() && row.points.back().id > start_of(row.call));
  }
  return !one_knows && !(one_may_have_lost && one_has_more);
}

// The only one that others may take. Older ones are no way on for who has lost his own: all would silently go
// back behind what they had. A record that no worker can take hides none: it is no state.
const HeldPoint* newest_state(const Standing& row) {
  const auto found = std::find_if(row.points.rbegin(), row.points.rend(),
                                  [](const HeldPoint& point) { return !point.is_record || point.is_shared; });
  return found == row.points.rend() ? nullptr : &*found;
}

// The newest first.
std::vector<PointId> candidates(Rows rows, std::uint64_t call) {
  std::set<PointId, std::greater<>> ids;
  for (const Standing& row : rows)
    for (const HeldPoint& point : row.points)
      if (point.id.call == call) ids.insert(point.id);
  if (may_begin(rows)) ids.insert(start_of(call));
  return {ids.begin(), ids.end()};
}

std::string who_has_what(Rows rows, std::uint64_t call) {
  std::string text;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    const Standing& row = rows[rank];
    const std::string what = !row.points.empty() ? "has points up to " + to_string(row.points.back().id)
                             : lives(row) ? fmt::format("stands behind step {} and has no point", row.steps)
                                          : fmt::format("has nothing of call {}", call);
    text += fmt::format("{}worker {} {}", text.empty() ? "" : "; ", rank, what);
  }
  return text;
}

Resumption from_points(Rows rows, std::uint64_t call, std::string why_not_memory) {
  const bool is_over =
      std::any_of(rows.begin(), rows.end(), [](const Standing& row) { return row.state == State::behind; });
  for (const PointId& id : candidates(rows, call)) {
    if (is_over && id.moment != PointId::Moment::end) break;  // who is behind can take nothing else
    const bool is_begin = id == start_of(call) && may_begin(rows);
    const auto has = [&](const Standing& row) {
      return find(row, id) != nullptr || (is_begin && row.state == State::fresh);
    };
    const auto gives = [&](const Standing& row) {
      const HeldPoint* const newest = newest_state(row);
      return newest != nullptr && newest->id == id && newest->is_shared;
    };
    auto sources = match(rows, has, gives);
    if (!sources) continue;
    const bool in_memory = is_begin && std::all_of(rows.begin(), rows.end(), [](const Standing& row) {
                             return row.state == State::fresh;
                           });
    if (in_memory) return {.way = Way::start, .id = id};
    return {.way = Way::point, .id = id, .sources = *std::move(sources), .reason = std::move(why_not_memory)};
  }
  std::string reason =
      fmt::format("there is no recovery point of call {} that all workers have or may take from another: {}",
                  call, who_has_what(rows, call));
  if (!why_not_memory.empty()) reason += "; " + why_not_memory;
  return {.way = Way::lost, .reason = std::move(reason)};
}

}  // namespace

Resumption decide(Rows rows) {
  std::uint64_t newest = 0, oldest = ~std::uint64_t{0};
  for (const Standing& row : rows) {
    newest = std::max(newest, row.call);
    oldest = std::min(oldest, row.call);
  }
  if (oldest < newest) return catch_up(rows, newest);
  // A worker that has not begun the call ends with an error, since others are in it, or begins it.
  if (std::any_of(rows.begin(), rows.end(), [](const Standing& row) { return row.state == State::between; }))
    return {.id = {.call = newest}};
  std::string why_not_memory;
  if (std::any_of(rows.begin(), rows.end(), lives))
    if (auto live = from_memory(rows, why_not_memory)) return *std::move(live);
  return from_points(rows, newest, std::move(why_not_memory));
}

// ---- Words ------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t words_before_points = 6;

// Where a point of the call is, and whether it is shared.
std::uint64_t word_of(const HeldPoint& point) {
  return point.id.step << 4 | (point.is_record ? 1U : 0U) << 3 |
         static_cast<std::uint64_t>(point.id.moment) << 1 | (point.is_shared ? 1U : 0U);
}

HeldPoint point_of(std::uint64_t call, std::uint64_t word) {
  return {.id = {.call = call, .moment = static_cast<PointId::Moment>(word >> 1 & 3), .step = word >> 4},
          .is_shared = (word & 1) != 0,
          .is_record = (word >> 3 & 1) != 0};
}

}  // namespace

std::vector<std::uint64_t> encode(const Standing& standing) {
  const std::size_t count = std::min(standing.points.size(), standing_points_max);
  std::uint64_t flags = static_cast<std::uint64_t>(standing.stage) << 32;
  flags |= static_cast<std::uint64_t>(standing.state) << 1;
  if (standing.is_shared) flags |= 1;
  if (standing.knows_common) flags |= 1 << 4;
  if (standing.has_end) flags |= 1 << 5;
  if (standing.may_have_lost) flags |= 1 << 6;
  if (standing.is_eager) flags |= 1 << 7;
  std::vector<std::uint64_t> words{standing.call, standing.steps, standing.finished,
                                   flags,         count,          standing.gives_ends_from};
  for (auto at = standing.points.end() - static_cast<std::ptrdiff_t>(count); at != standing.points.end();
       ++at)
    words.push_back(word_of(*at));
  words.resize(words_before_points + standing_points_max);
  return words;
}

Standing decode_standing(std::span<const std::uint64_t> words) {
  Standing standing{.state = static_cast<State>(words[3] >> 1 & 7),
                    .call = words[0],
                    .steps = words[1],
                    .is_shared = (words[3] & 1) != 0,
                    .stage = static_cast<std::uint32_t>(words[3] >> 32),
                    .knows_common = (words[3] & 1 << 4) != 0,
                    .may_have_lost = (words[3] & 1 << 6) != 0,
                    .is_eager = (words[3] & 1 << 7) != 0,
                    .finished = words[2],
                    .has_end = (words[3] & 1 << 5) != 0,
                    .gives_ends_from = words[5]};
  const std::size_t count = std::min<std::size_t>(words[4], standing_points_max);
  for (std::size_t i = 0; i < count; ++i)
    standing.points.push_back(point_of(standing.call, words[words_before_points + i]));
  return standing;
}

}  // namespace muster::checkpoint
