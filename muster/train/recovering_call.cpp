#include "muster/train/recovering_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "muster/train/front_end.h"
#include "muster/train/process.h"
#include "muster/train/served_parameters.h"

namespace muster::train {
namespace {

using checkpoint::HeldPoint;
using checkpoint::PointId;
using checkpoint::Standing;
using In = Standing::State;
using Way = checkpoint::Resumption::Way;

constexpr int rounds_max = 64;       // of points found damaged, until we give up
constexpr std::size_t told_max = 4;  // of the steps that are on the disk: the anchor, and the newest three

PointId end_of(std::uint64_t call) { return {.call = call, .moment = PointId::Moment::end}; }

// " (text)", or nothing where there is no text.
std::string in_brackets(const std::string& text) { return text.empty() ? "" : fmt::format(" ({})", text); }

bool gives(const checkpoint::Resumption& next, std::uint32_t rank) {
  return std::find(next.sources.begin(), next.sources.end(), std::optional(rank)) != next.sources.end();
}

// What is in memory does not lead back to an earlier call of the script.
Error has_to_start_anew(const checkpoint::Resumption& next) {
  return {Code::aborted,
          fmt::format("{}: all have to go back to a point of call {}, and this worker is past it. Start it "
                      "again; the job goes on from the newest point that all have",
                      next.reason, next.id.call)};
}

// Steps of the two modes wait for the other workers at other moments, each for what the other never says.
Result<> check_modes(std::span<const Standing> ranks) {
  const auto differs = [&](const Standing& rank) {
    return rank.call == ranks[0].call && rank.state != In::between && rank.is_eager != ranks[0].is_eager;
  };
  const auto other = std::ranges::find_if(ranks, differs);
  if (ranks[0].state == In::between || other == ranks.end()) return {};
  const auto mode_of = [](const Standing& rank) { return rank.is_eager ? "eager" : "graph"; };
  return fail(Code::invalid_argument,
              fmt::format("worker 0 trains in {} mode and worker {} in {} mode: call set_context(mode=...) "
                          "with the same mode in all workers, also in one that is started again",
                          mode_of(ranks[0]), other - ranks.begin(), mode_of(*other)));
}

}  // namespace

Result<std::unique_ptr<RecoveringCall>> RecoveringCall::begin(Recovery& recovery, std::string kind) {
  MUSTER_CHECK(!recovery.calls().inside, "one call at a time is recovered");
  MUSTER_TRY(checkpoint::RunStore * store, recovery.store());
  CallNumbers& calls = recovery.calls();
  recovery.set_inside(true);
  recovery.report_kept_calls(store->finished_calls());
  calls.evals = 0;
  auto call =
      std::unique_ptr<RecoveringCall>(new RecoveringCall(recovery, *store, std::move(kind), calls.begun++));
  process().call = call.get();
  return call;
}

RecoveringCall::~RecoveringCall() {
  process().call = nullptr;
  recovery_.set_inside(false);
}

RecoveringCall* RecoveringCall::current() { return process().call; }

bool RecoveringCall::holds(const PointId& id) const {
  const std::vector<PointId> points = store_.points();
  return std::find(points.begin(), points.end(), id) != points.end();
}

// An evaluation leaves only a record, and so does an end whose state a later point has.
bool RecoveringCall::has_end() const {
  if (holds(end_id())) return true;
  if (!store_.finished(number_)) return false;
  const std::vector<PointId> points = store_.points();
  return kind_ == "eval" || store_.finished(number_ + 1) || (!points.empty() && points.back().call > number_);
}

const Recovery::PendingEnd* RecoveringCall::pending_end(std::uint64_t call) const {
  const auto& pending = recovery_.pending_ends();
  const auto found = std::find_if(pending.begin(), pending.end(),
                                  [&](const PendingEnd& end) { return end.record.call == call; });
  return found == pending.end() ? nullptr : &*found;
}

bool RecoveringCall::has_end_at_hand() const { return has_end() || pending_end(number_) != nullptr; }

// Of a call before this one. Where only the record is left, the end of a later call has the state.
bool RecoveringCall::can_give_end(std::uint64_t call) const {
  if (holds(end_of(call))) return store_.is_shared(end_of(call));
  if (const PendingEnd* const end = pending_end(call)) return end->is_shared;
  const auto record = store_.finished(call);
  return record && (record->kind == "eval" || call + 1 < number_);
}

std::uint64_t RecoveringCall::gives_ends_from() const {
  std::uint64_t from = number_;
  while (from > 0 && can_give_end(from - 1)) --from;
  return from;
}

// A point of a later call says that all had the end of this one.
bool RecoveringCall::knows_common() const {
  const auto common = store_.committed();
  return common && *common > start_id();
}

// A start that is kept says that its folder was there before any step was.
bool RecoveringCall::may_have_lost() const { return !store_.has_begun(number_) && !holds(start_id()); }

// Where only a record is left, the later end that has its state says whose that is.
bool RecoveringCall::can_share_end() const {
  const std::vector<PointId> points = store_.points();
  return kind_ == "eval" || std::any_of(points.begin(), points.end(), [&](const PointId& id) {
           return id.moment == PointId::Moment::end && id.call >= number_ && store_.is_shared(id) &&
                  (id == end_id() || !holds(end_id()));
         });
}

// ---- Where all go on --------------------------------------------------------------------------------------

// Where the call does not say what is its own, all of it is.
std::string RecoveringCall::own_state() const {
  if (!sharing_.own_state) return "what the call keeps is each worker's own";
  auto own = sharing_.own_state();
  return own ? *std::move(own) : own.error().message;
}

Standing RecoveringCall::standing(const Memory& memory) const {
  // What cannot be read now may be there all the same: such a worker does not say that nothing was.
  const bool is_known =
      memory.state != In::fresh || (store_.unread().empty() && !recovery_.calls().lacks_end);
  Standing standing{.state = is_known ? memory.state : In::spoilt,
                    .call = number_,
                    .steps = memory.steps,
                    .is_shared = own_state().empty(),
                    .stage = sharing_.stage,
                    .knows_common = knows_common(),
                    .may_have_lost = may_have_lost(),
                    .is_eager = context().mode == Mode::eager,
                    .finished = store_.finished_calls(),
                    .has_end = has_end_at_hand(),
                    .gives_ends_from = gives_ends_from()};
  for (const PointId& id : store_.points())
    if (id.call == number_ && id != end_id()) standing.points.push_back({id, store_.is_shared(id)});
  if (has_end())
    standing.points.push_back({.id = end_id(), .is_shared = can_share_end(), .is_record = !holds(end_id())});
  return standing;
}

// Where memory counts, no worker waits for a disk.
bool RecoveringCall::disk_counts(const Memory& memory) const {
  const bool lives = memory.state == In::live || memory.state == In::committing;
  return !lives || !own_state().empty();
}

// What was said of a disk that was in trouble may be true no more when all are asked once more.
Result<std::vector<Standing>> RecoveringCall::standings(const Memory& memory) {
  if (disk_counts(memory)) store_.look_again();
  MUSTER_TRY(const std::vector<Words> rows, recovery_.gather(checkpoint::encode(standing(memory))));
  std::vector<Standing> ranks;
  for (const Words& row : rows) ranks.push_back(checkpoint::decode_standing(row));
  MUSTER_TRY_VOID(check_modes(ranks));
  return ranks;
}

Result<checkpoint::Resumption> RecoveringCall::ask(const Memory& memory) {
  return standings(memory).map([](const std::vector<Standing>& ranks) { return checkpoint::decide(ranks); });
}

// ---- Between two calls ------------------------------------------------------------------------------------

// As one that has not begun the next call, which is never begun by this.
Result<> RecoveringCall::meet(Recovery& recovery) {
  MUSTER_TRY(checkpoint::RunStore * store, recovery.store());
  RecoveringCall next(recovery, *store, "", recovery.calls().begun);
  next.sharing_.stage = recovery.calls().stage;
  return next.wait_for_those_behind();
}

Result<> RecoveringCall::wait_for_those_behind() {
  while (true) {
    MUSTER_TRY(const std::vector<Standing> ranks, standings({.state = In::between}));
    bool all_are_here = true;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const Standing& row = ranks[rank];
      if (row.call > number_ || (row.call == number_ && row.state != In::between))
        return fail(
            Code::refused,
            fmt::format("worker {} is in call {} of the script already, and worker {} has a collective "
                        "call of its own to make before it. Only calls inside of train, eval and "
                        "muster.recoverable can be made up for",
                        rank, row.call, recovery_.rank()));
      all_are_here = all_are_here && row.call == number_;
    }
    if (all_are_here) break;
    const Resumption next = checkpoint::decide(ranks);
    if (next.way == Way::back) return fail(has_to_start_anew(next));
    if (next.way == Way::lost) return fail(lost(next.reason));
    if (next.way != Way::end_of) continue;
    if (const auto given = take_ends(next); !given) return fail(given.error());
  }
  recovery_.note_rendezvous();
  return {};
}

// ---- Where all go on, in a call ---------------------------------------------------------------------------

Result<RecoveringCall::Start> RecoveringCall::agree() {
  // A save that fails has been said; the point is not there.
  if (disk_counts(in_memory_)) (void)saver_->wait();
  is_rendezvous_due_ = false;
  for (int rounds = 0; rounds < rounds_max; ++rounds) {
    std::optional<Resumption> next = std::exchange(decided_, std::nullopt);
    if (!next) {
      MUSTER_TRY(next, ask(in_memory_));
    }
    std::optional<Start> start;
    switch (next->way) {
      case Way::ask_again:
        // A worker that is behind and has the end of its call goes on to the next one, where the others are.
        if (number_ < next->id.call && has_end_at_hand() && in_memory_.state != In::live)
          return Start{.finished = true};
        continue;
      case Way::end_of: {
        MUSTER_TRY(const bool taken, take_ends(*next));
        if (taken) return Start{.finished = true};
        rounds = 0;  // a worker that comes back takes the ends of all calls before this one
        continue;
      }
      case Way::back:
        // Those who are not past it wait here for the others.
        if (number_ > next->id.call) return fail(has_to_start_anew(*next));
        continue;
      case Way::lost:
        return fail(lost(next->reason));
      case Way::start:
        recovery_.note_rendezvous();
        store_.note_begun(number_);
        return Start{};
      case Way::live: {
        MUSTER_TRY(start, go_on_live(*next));
        break;
      }
      case Way::point: {
        MUSTER_TRY(start, go_to_point(*next));
        break;
      }
    }
    if (!start) continue;
    recovery_.note_rendezvous();
    if (!start->is_live) newest_ = next->way == Way::live ? start->point->id : next->id;
    if (start->point) {
      recovery_.calls().lacks_end = false;
      in_memory_ = {};  // about to change
    }
    // All have gone back: an end that no disk has taken yet is one of a future that is lost.
    if (next->way == Way::point && start->point)
      std::erase_if(recovery_.pending_ends(), [&](const auto& end) { return end.record.call >= number_; });
    return *std::move(start);
  }
  return fail(Code::corrupt, "the workers do not come to one point: too many recovery points are damaged");
}

Error RecoveringCall::lost(const std::string& reason) const {
  return {
      Code::not_found,
      fmt::format("{}. Nothing was changed: start the workers where their recovery points are (here: {}), "
                  "or begin anew with MUSTER_FRESH=1, or with `muster checkpoint rm {}`",
                  reason, store_.folder(), recovery_path(store_.folder()))};
}

Result<bool> RecoveringCall::all_have(bool mine) {
  MUSTER_TRY(const std::vector<Words> rows, recovery_.gather({mine ? 1U : 0U}));
  return std::all_of(rows.begin(), rows.end(), [](const Words& row) { return row[0] != 0; });
}

Result<std::optional<Handover>> RecoveringCall::hand_over(const Resumption& next, const Handover& mine) {
  for (std::uint32_t rank = 0; rank < next.sources.size(); ++rank) {
    if (next.sources[rank] != recovery_.rank()) continue;
    const TimePoint begin = recovery_.clock().now();
    MUSTER_TRY_VOID(send_handover(mine, rank, recovery_));
    const std::chrono::duration<double, std::milli> taken = recovery_.clock().now() - begin;
    log::info(fmt::format("worker {} was given the state of this one: {} bytes in {:.1f} ms", rank,
                          mine.point ? size_bytes(*mine.point) : 0, taken.count()));
  }
  const auto source = next.sources[recovery_.rank()];
  if (!source) return std::nullopt;
  auto taken = receive_handover(*source, recovery_, memory_);
  if (taken) return *std::move(taken);
  if (taken.error().code != Code::corrupt) return fail(std::move(taken).error());
  log::error(taken.error().message);
  return Handover{};
}

Result<std::optional<RecoveringCall::Start>> RecoveringCall::go_on_live(const Resumption& next) {
  Handover mine;
  if (gives(next, recovery_.rank())) {
    MUSTER_TRY(mine.point, sharing_.capture());
  }
  MUSTER_TRY(auto taken, hand_over(next, mine));
  const bool takes = next.sources[recovery_.rank()].has_value();
  MUSTER_TRY(const bool all, all_have(!takes || taken->point.has_value()));
  if (!all) return std::nullopt;
  if (!takes) return Start{.is_live = true};
  say_resuming(taken->point->id.step);
  return Start{.point = std::move(taken->point), .is_of_another = true, .own = newest_own()};
}

Result<std::optional<RecoveringCall::Start>> RecoveringCall::go_to_point(const Resumption& next) {
  const std::string& reason = next.reason.empty() ? in_memory_.spoilt_by : next.reason;
  if (!reason.empty())
    log::warning(
        fmt::format("all go back to {}: {}{}", to_string(next.id), reason, in_brackets(own_state())));
  const bool takes = next.sources[recovery_.rank()].has_value();
  const bool in_memory = !takes && in_memory_.state == In::fresh && next.id == start_id() && !holds(next.id);
  const bool is_end = next.id == end_id();
  Handover mine;
  if (!takes && !in_memory) mine = on_disk(next.id);
  MUSTER_TRY(auto taken, hand_over(next, mine));
  const Handover& had = takes ? *taken : mine;
  // Of an end the record may be all that is left: a later one has its state.
  MUSTER_TRY(const bool all,
             all_have(in_memory || had.point.has_value() || (is_end && had.result.has_value())));
  if (!all) return std::nullopt;
  if (in_memory) return Start{};
  const bool all_hold_it = std::none_of(next.sources.begin(), next.sources.end(),
                                        [](const auto& source) { return source.has_value(); });
  // Going over an end is not going back: what all have of later calls stays known.
  if (all_hold_it && (!is_end || store_.committed() < next.id)) store_.set_committed(next.id);
  if (all_hold_it && !is_end) store_.note_begun(number_);
  if (is_end) {
    is_end_agreed_ = true;
    known_end_ = KnownEnd{.had = takes ? *std::move(taken) : std::move(mine), .is_of_another = takes};
    return Start{.finished = true};
  }
  say_resuming(next.id.step);
  if (!takes) return Start{.point = std::move(mine.point)};
  return Start{.point = std::move(taken->point), .is_of_another = true, .own = newest_own()};
}

// Of this call: when another worker's state is taken, what is this worker's own comes from here.
std::optional<checkpoint::Point> RecoveringCall::newest_own() const {
  std::vector<PointId> points = store_.points();
  for (auto id = points.rbegin(); id != points.rend(); ++id) {
    if (id->call != number_) continue;
    if (auto loaded = store_.load(*id)) return *std::move(loaded);
  }
  return std::nullopt;
}

// ---- Steps ------------------------------------------------------------------------------------------------

Result<> RecoveringCall::commit() {
  const Result<> exchanged = exchange(in_memory_.steps);
  if (exchanged) {
    in_memory_ = {};
    return {};
  }
  Error error = exchanged.error();
  const Memory mine{.state = In::committing, .steps = in_memory_.steps};
  while (true) {
    if (!recovery_.lost_epoch(error)) return fail(std::move(error));
    MUSTER_TRY_VOID(recovery_.next_epoch());
    auto next = ask_those_here(mine);
    if (!next) {
      error = std::move(next).error();
      continue;
    }
    if (next->way == Way::ask_again && next->commits[recovery_.rank()]) {
      is_rendezvous_due_ = true;  // with the step done
      in_memory_ = {};
      return {};
    }
    decided_ = *std::move(next);
    return fail(Code::peer_lost,
                "a worker was lost, and the step is made again with the one that takes its place");
  }
}

// Until no worker is behind any more: this one keeps what it has for those that are.
Result<checkpoint::Resumption> RecoveringCall::ask_those_here(const Memory& mine) {
  while (true) {
    MUSTER_TRY(Resumption next, ask(mine));
    if (next.way == Way::end_of) {
      if (const auto given = take_ends(next); !given) return fail(given.error());
    } else if (next.way != Way::ask_again || !next.commits.empty()) {
      return next;
    }
  }
}

// One short call of all: who is past it knows that all have what it has. What each has on its disk goes
// along.
Result<> RecoveringCall::exchange(std::uint64_t steps) {
  Words mine{number_, steps, store_.finished_calls(), written_};
  const Words told = steps_on_disk();
  mine.insert(mine.end(), told.begin(), told.end());
  MUSTER_TRY(const std::vector<Words> rows, recovery_.gather(mine));
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    if (rows[rank][0] != number_ || rows[rank][1] != steps)
      return fail(
          Code::invalid_argument,
          fmt::format("worker {} is at step {} of call {}, worker {} at step {} of call {}: all workers "
                      "make the same calls and as many steps",
                      rank, rows[rank][1], rows[rank][0], recovery_.rank(), steps, number_));
  note_common(rows);
  report_finished(rows);
  compare_written(rows);
  return {};
}

// Not only the newest: who was not told once (an epoch that breaks is over for some and not for others) is
// told the next time, before what it has not heard of is old enough to go. What lies behind the newest
// belongs to a future that is lost, and may go at any moment.
RecoveringCall::Words RecoveringCall::steps_on_disk() const {
  Words steps;
  for (const PointId& id : store_.points())
    if (id.call == number_ && id.moment == PointId::Moment::step && id <= newest_) steps.push_back(id.step);
  if (steps.size() > told_max) {
    // What stays whatever its age, and the newest.
    const auto common = store_.committed();
    const bool has_common = common && *common == step_id(common->step) &&
                            std::find(steps.begin(), steps.end(), common->step) != steps.end();
    const std::uint64_t anchor = has_common ? common->step : steps.front();
    steps.erase(steps.begin(), steps.end() - told_max);
    steps.front() = anchor;
  }
  steps.resize(told_max);
  return steps;
}

// The newest point that all have told of, at the end of their rows, is what the job never goes back behind.
// From the rows alone: all workers that have them know the same one, so that all keep the same points.
void RecoveringCall::note_common(const std::vector<Words>& rows) {
  const auto tells = [](const Words& row, std::uint64_t step) {
    return std::find(row.end() - told_max, row.end(), step) != row.end();
  };
  std::uint64_t common = 0;
  for (auto step = rows[0].end() - told_max; step != rows[0].end(); ++step)
    if (std::all_of(rows.begin(), rows.end(), [&](const Words& row) { return tells(row, *step); }))
      common = std::max(common, *step);
  if (common == 0) return;
  store_.set_committed(step_id(common));
  if (ServedParameters* const served = process().served_parameters)
    served->note_common_point(step_id(common));
}

// Where a worker has nothing to compare, which has come back just now or writes other parameters, nothing is
// known.
void RecoveringCall::compare_written(const std::vector<Words>& rows) {
  const auto compared = std::exchange(compared_, nullptr);
  if (!compared || std::ranges::any_of(rows, [](const Words& row) { return row[3] == 0; })) return;
  compared(std::ranges::all_of(rows, [&](const Words& row) { return row[3] == written_; }));
}

// Calls whose ends all have.
void RecoveringCall::report_finished(const std::vector<Words>& rows) {
  std::uint64_t all = ~std::uint64_t{0};
  for (const Words& row : rows) all = std::min(all, row[2]);
  recovery_.report_finished_calls(all);
}

Result<bool> RecoveringCall::tries_again(const Error& error) {
  if (decided_ || is_rendezvous_due_) return true;
  if (!recovery_.lost_epoch(error)) return false;
  MUSTER_TRY_VOID(recovery_.next_epoch());
  return true;
}

// ---- Points -----------------------------------------------------------------------------------------------

Result<> RecoveringCall::restore(const checkpoint::Point& point, const TrainingParts& parts,
                                 StateOwner owner) const {
  return train::restore(point, parts, owner).map_error([&](Error error) {
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
  retry_pending_ends();
  newest_ = point.id;
  if (ServedParameters* const served = process().served_parameters) served->note_point(point.id);
  saver_->save(std::move(point));  // when the one before is done
}

void RecoveringCall::say_resuming(std::uint64_t step) {
  if (std::exchange(recovery_.calls().resumed, true)) return;
  print_line(resuming_line(store_.folder(), step));
}

void RecoveringCall::note_step(std::uint64_t step, std::uint64_t hash) {
  (void)store_.add_step_hash(number_, step, hash);
}

}  // namespace muster::train
