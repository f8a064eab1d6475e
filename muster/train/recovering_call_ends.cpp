// The ends of calls: kept by all before the call counts as finished, and taken from others.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "muster/train/recovering_call.h"

namespace muster::train {
namespace {

using checkpoint::PointId;
using In = checkpoint::Standing::State;

// In an end on this worker's disk: what in it is a worker's own is that of another one.
constexpr const char* of_another_section = "of another worker";

}  // namespace

// ---- Ends of calls that others have finished --------------------------------------------------------------

// A point, and of an end what the script was given. A point that is damaged is put aside, one that the disk
// does not give now is passed over: there is nothing.
Handover RecoveringCall::on_disk(const PointId& id) {
  Handover found;
  if (id.moment == PointId::Moment::end)
    if (const auto record = store_.finished(id.call)) found.result = record->result;
  if (!holds(id)) return found;
  auto loaded = store_.load(id);
  if (!loaded) {
    if (loaded.error().code == Code::io)
      store_.pass_over(id, loaded.error().message);
    else
      store_.drop(id, loaded.error().message);
    return {};
  }
  found.point = *std::move(loaded);
  return found;
}

// Whether this worker has got the end that it lacks.
Result<bool> RecoveringCall::take_ends(const Resumption& next) {
  // Which call each of them lacks, they say once more to those who give.
  MUSTER_TRY(const std::vector<Words> rows, recovery_.gather({number_}));
  const std::uint32_t rank = recovery_.rank();
  for (std::uint32_t other = 0; other < rows.size(); ++other)
    if (next.sources[other] == rank)
      MUSTER_TRY_VOID(send_handover(end_at_hand(rows[other][0]), other, recovery_));
  const auto source = next.sources[rank];
  if (!source) return false;
  MUSTER_TRY(Handover taken, receive_handover(*source, recovery_, memory_));
  if (!taken.result && !taken.point) return false;
  known_end_ = KnownEnd{.had = std::move(taken), .is_of_another = true};
  return true;
}

// On the disk, or in memory until that takes it. Nothing: it was damaged, and is put aside.
Handover RecoveringCall::end_at_hand(std::uint64_t call) {
  Handover found = on_disk({.call = call, .moment = PointId::Moment::end});
  if (const PendingEnd* const end = pending_end(call); end != nullptr && !found.point)
    found = {.point = end->point, .result = end->record.result};
  return found;
}

Result<RecoveringCall::KnownEnd> RecoveringCall::find_end() {
  while (!known_end_) {
    if (has_end_at_hand()) {
      Handover mine = end_at_hand(number_);
      if (mine.point || mine.result) return KnownEnd{.had = std::move(mine)};
    } else {
      in_memory_ = {.state = In::behind};
      MUSTER_TRY(const Start start, agree());
      MUSTER_CHECK(start.finished, "who is behind can only take the end");
    }
  }
  return *std::exchange(known_end_, std::nullopt);
}

// From now on it is this worker's, but for what in it is another one's own.
void RecoveringCall::keep_end_of_another(const End& end) {
  checkpoint::Point copy = *end.point;
  if (!copy.is_shared) copy.state.emplace(of_another_section, "1");
  (void)keep_end(std::move(copy), end.result);
}

Result<RecoveringCall::End> RecoveringCall::end() {
  (void)saver_->wait();
  MUSTER_TRY(KnownEnd found, find_end());
  End end{.point = std::move(found.had.point),
          .result = found.had.result.value_or(""),
          .is_of_another = found.is_of_another};
  if (end.is_of_another && end.point)
    keep_end_of_another(end);
  else if (end.point && holds(end_id()))
    (void)journal(number_, kind_, end.result);
  if (end.point && end.point->state.contains(of_another_section)) end.is_of_another = true;
  if (kind_ != "eval") recovery_.calls().lacks_end = !end.point;
  // Where others have just gone past this call, some of them may owe its end.
  recovery_.report_kept_calls(store_.finished_calls());
  if (is_finished() || is_end_agreed_) recovery_.report_finished_calls(number_ + 1);
  return end;
}

// ---- The end ----------------------------------------------------------------------------------------------

bool RecoveringCall::journal(std::uint64_t call, const std::string& kind, std::string result) {
  if (store_.finished(call)) return true;
  const auto kept = store_.finish_call({.call = call, .kind = kind, .result = std::move(result)});
  if (!kept) log::error(fmt::format("the end of call {} is not kept: {}", call, kept.error().message));
  return kept.has_value();
}

// An end that could not be saved is not in the journal either: it would be taken for one that is no more
// needed.
bool RecoveringCall::keep_end(checkpoint::Point end, const std::string& result) {
  checkpoint::Point copy = end;
  save(std::move(copy));
  if (saver_->wait() && journal(number_, kind_, result)) return true;
  const bool is_shared = end.is_shared;
  recovery_.pending_ends().push_back(
      {std::move(end), is_shared, {.call = number_, .kind = kind_, .result = result}});
  return false;
}

// Once all are past this call, no worker goes back behind its end, which has all that earlier ends of the
// same tensors had.
void RecoveringCall::thin_pending_ends() {
  auto& pending = recovery_.pending_ends();
  if (pending.empty() || pending.back().record.call != number_) return;
  const std::uint64_t newest = checkpoint::signature_of(*pending.back().point);
  for (auto end = pending.begin(); end != pending.end() - 1; ++end)
    if (end->point && checkpoint::signature_of(*end->point) == newest) end->point.reset();
}

// An earlier end that is on no disk, and that no other worker has.
bool RecoveringCall::owes_end() const {
  const auto& pending = recovery_.pending_ends();
  return std::any_of(pending.begin(), pending.end(), [&](const Recovery::PendingEnd& end) {
    return !end.is_shared && end.record.call != number_;
  });
}

// A record stands for an end only where the point that has its state is there.
void RecoveringCall::retry_pending_ends() {
  auto& pending = recovery_.pending_ends();
  if (pending.empty()) return;
  (void)saver_->wait();
  for (const Recovery::PendingEnd& end : pending) {
    if (!end.point || holds(end.point->id)) continue;
    saver_->save(*end.point);
    if (!saver_->wait()) return;
  }
  while (!pending.empty()) {
    const checkpoint::CallRecord& oldest = pending.front().record;
    if (!journal(oldest.call, oldest.kind, oldest.result)) return;
    log::info(fmt::format("the end of call {} is on the disk now", oldest.call));
    pending.erase(pending.begin());
  }
}

// Every worker that is past the rendezvous knows which workers have the end.
Result<> RecoveringCall::finish(std::optional<checkpoint::Point> end, std::string result) {
  (void)saver_->wait();
  const bool is_shared = end && end->is_shared;
  const Words told = steps_on_disk();
  const bool is_kept = end ? keep_end(*std::move(end), result) : journal(number_, kind_, std::move(result));
  recovery_.report_kept_calls(store_.finished_calls());
  Words mine{sharing_.stage, is_kept ? 1U : 0U, is_shared ? 1U : 0U, owes_end() ? 1U : 0U};
  mine.insert(mine.end(), told.begin(), told.end());
  MUSTER_TRY(const std::vector<Words> rows, recovery_.gather(mine));
  // Until the end of each is kept, the newest of the last steps is what all can go back to.
  note_common(rows);
  thin_pending_ends();
  const auto has = [&](const Words& row) {
    return row[1] != 0 || std::any_of(rows.begin(), rows.end(), [&](const Words& other) {
             return other[0] == row[0] && other[1] != 0 && other[2] != 0;
           });
  };
  // Of calls before this one: theirs are not over either.
  const bool one_owes = std::any_of(rows.begin(), rows.end(), [](const Words& row) { return row[3] != 0; });
  if (std::all_of(rows.begin(), rows.end(), has)) {
    if (one_owes) return {};
    recovery_.report_finished_calls(number_ + 1);
    store_.call_is_finished(number_);
    return {};
  }
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    if (!has(rows[rank]))
      log::error(
          fmt::format("worker {} could not keep the end of call {} (see its log), so the call is not "
                      "over: until it can, a death of worker {} sends the job back to the points before",
                      rank, number_, rank));
  return {};
}

}  // namespace muster::train
