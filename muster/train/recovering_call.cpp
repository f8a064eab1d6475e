#include "muster/train/recovering_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "muster/train/front_end.h"

namespace muster::train {
namespace {

using checkpoint::PointId;
using Words = Recovery::Words;

// Points of one worker that the others hear of: more than a store keeps.
constexpr std::size_t points_max = 16;
constexpr int damaged_max = 64;  // points found damaged, or calls waited for, until we give up

std::uint64_t word_of(const PointId& id) { return id.step << 2 | static_cast<std::uint64_t>(id.moment); }
PointId id_of(std::uint64_t call, std::uint64_t word) {
  return {.call = call, .moment = static_cast<PointId::Moment>(word & 3), .step = word >> 2};
}

// What a worker says of itself: its call, then its points of it, the newest first.
Words words_of(std::uint64_t call, const std::vector<PointId>& points) {
  Words words{call, std::min(points.size(), points_max)};
  for (auto id = points.rbegin(); id != points.rend() && words.size() < 2 + points_max; ++id)
    words.push_back(word_of(*id));
  words.resize(2 + points_max);
  return words;
}

bool has(const Words& row, const PointId& id) {
  const auto begin = row.begin() + 2;
  const auto end = begin + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(row[1], points_max));
  return std::find(begin, end, word_of(id)) != end;
}

std::optional<PointId> newest_in_all(const std::vector<Words>& rows, std::uint64_t call) {
  for (std::size_t i = 0; i < rows[0][1] && i < points_max; ++i) {
    const PointId id = id_of(call, rows[0][2 + i]);
    if (std::all_of(rows.begin(), rows.end(), [&](const Words& row) { return has(row, id); })) return id;
  }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<RecoveringCall>> RecoveringCall::begin(Recovery& recovery, std::string kind) {
  MUSTER_CHECK(!recovery.calls().inside, "one call at a time is recovered");
  MUSTER_TRY(checkpoint::RunStore * store, recovery.store());
  CallNumbers& calls = recovery.calls();
  recovery.set_inside(true);
  calls.evals = 0;
  return std::unique_ptr<RecoveringCall>(
      new RecoveringCall(recovery, *store, std::move(kind), calls.begun++));
}

bool RecoveringCall::holds(const PointId& id) const {
  const std::vector<PointId> points = store_.points();
  return std::find(points.begin(), points.end(), id) != points.end();
}

// Whoever is one call behind ends that call first, and then comes to this one.
Result<RecoveringCall::Agreed> RecoveringCall::newest_common(bool fresh) {
  std::vector<PointId> points = store_.points();
  std::erase_if(points, [this](const PointId& id) { return id.call != number_; });
  // What is in memory is the start: everybody can begin there.
  if (fresh && (points.empty() || points.front() != start_id())) points.insert(points.begin(), start_id());
  for (int round = 0; round < damaged_max; ++round) {
    MUSTER_TRY(const std::vector<Words> rows, recovery_.gather(words_of(number_, points)));
    const auto call_of = [](const Words& a, const Words& b) { return a[0] < b[0]; };
    const auto [least, most] = std::minmax_element(rows.begin(), rows.end(), call_of);
    if ((*most)[0] > number_) return Agreed{.finished = true};
    if ((*least)[0] < number_) continue;
    if (const auto id = newest_in_all(rows, number_)) return Agreed{.id = *id};
    return fail(Code::not_found,
                fmt::format("there is no recovery point of call {} that all workers hold: one of them could "
                            "not save its own (see its log), so the job cannot go on from here",
                            number_));
  }
  return fail(Code::internal, "the workers do not come to the same call");
}

Result<RecoveringCall::Start> RecoveringCall::agree(bool fresh) {
  (void)saver_.wait();  // a failed save has been said; the point is not there
  for (int round = 0; round < damaged_max; ++round) {
    MUSTER_TRY(const Agreed agreed, newest_common(fresh));
    if (agreed.finished) return Start{.finished = true};
    const bool in_memory = fresh && agreed.id == start_id() && !holds(agreed.id);
    Result<checkpoint::Point> loaded = checkpoint::Point{};
    if (!in_memory) loaded = store_.load(agreed.id);
    MUSTER_TRY(const std::vector<Words> rows, recovery_.gather({loaded.has_value() ? 1U : 0U}));
    if (!loaded) store_.drop(agreed.id, loaded.error().message);
    if (std::any_of(rows.begin(), rows.end(), [](const Words& row) { return row[0] == 0; })) continue;
    if (in_memory) return Start{};
    say_resuming(agreed.id.step);
    return Start{.point = *std::move(loaded)};
  }
  return fail(Code::corrupt, "too many recovery points are damaged");
}

Result<> RecoveringCall::restore(const checkpoint::Point& point, const TrainingParts& parts) const {
  return train::restore(point, parts).map_error([&](Error error) {
    if (error.code == Code::invalid_argument)
      error.message = fmt::format(
          "the recovery point '{}' does not fit this script: {}. Start it as it was, or delete "
          "{} to start fresh",
          to_string(point.id), error.message, recovery_path(store_.folder()));
    return error;
  });
}

void RecoveringCall::save(checkpoint::Point point) {
  // From here on this process is no newcomer: going back is not resuming what another one left.
  recovery_.calls().resumed = true;
  saver_.save(std::move(point));
}

void RecoveringCall::say_resuming(std::uint64_t step) {
  if (std::exchange(recovery_.calls().resumed, true)) return;
  print_line(resuming_line(store_.folder(), step));
}

void RecoveringCall::note_step(std::uint64_t step, std::uint64_t hash) {
  (void)store_.add_step_hash(number_, step, hash);
}

void RecoveringCall::journal(std::string result) {
  if (store_.finished(number_)) return;
  const auto kept = store_.finish_call({.call = number_, .kind = kind_, .result = std::move(result)});
  if (!kept) log::error(fmt::format("the end of call {} is not kept: {}", number_, kept.error().message));
}

// Whoever is past the meeting knows that all have the end on disk. An end that could not be saved is not in
// the journal either: it would be taken for one that is no more needed.
Result<> RecoveringCall::finish(std::optional<checkpoint::Point> end, std::string result) {
  (void)saver_.wait();
  if (end) save(*std::move(end));
  const bool is_kept = saver_.wait().has_value();
  if (is_kept) journal(std::move(result));
  MUSTER_TRY_VOID(recovery_.gather({number_}));
  recovery_.report_finished_calls(number_ + 1);
  return {};
}

Result<RecoveringCall::End> RecoveringCall::end() {
  (void)saver_.wait();
  End end;
  const auto record = store_.finished(number_);
  if (record) end.result = record->result;
  if (holds(end_id())) {
    auto loaded = store_.load(end_id());
    if (!loaded) {
      store_.drop(end_id(), loaded.error().message);
      return fail(loaded.error());
    }
    end.point = *std::move(loaded);
  } else if (!record) {
    return fail(
        Code::not_found,
        fmt::format("the other workers have finished call {} of the script, but its end is not in {}: "
                    "this worker cannot come back; delete {} and start the job anew",
                    number_, store_.folder(), store_.folder()));
  }
  if (end.point) journal(end.result);
  recovery_.report_finished_calls(number_ + 1);
  return end;
}

}  // namespace muster::train
