#include "muster/train/session_recovery.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "muster/train/found_jobs.h"
#include "muster/train/front_end.h"
#include "muster/train/process.h"
#include "muster/train/recovering_call.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

using namespace std::chrono_literals;

constexpr auto patience_for_news = 1s;
constexpr int links_lost_max = 3;
constexpr auto patience_for_new_epoch = 10s;  // that was asked for

}  // namespace

SessionRecovery::SessionRecovery(Membership& membership, Collectives& collectives, WorkerGroups& groups,
                                 cluster::Node& node, Options options)
    : membership_(membership),
      collectives_(collectives),
      groups_(groups),
      node_(node),
      options_(std::move(options)) {}

// ---- Its disk ---------------------------------------------------------------------------------------------

Result<checkpoint::RunStore*> SessionRecovery::store() {
  if (!store_) MUSTER_TRY_VOID(open_store());
  return &*store_;
}

Result<> SessionRecovery::open_store() {
  const cluster::Roster& roster = membership_.roster();
  MUSTER_TRY(auto made, checkpoint::RunStore::open({.folder = options_.path,
                                                    .job = fmt::format("{:016x}", roster.job_id),
                                                    .world_size = size(),
                                                    .rank = rank(),
                                                    .epoch = roster.epoch,
                                                    .fresh = options_.fresh}));
  store_.emplace(std::move(made));
  open_store_.store(&*store_, std::memory_order_release);
  keep_seed(store_->folder(), roster.seed);
  step_mark_ = std::make_unique<checkpoint::StepMark>(store_->folder(), getpid());
  return {};
}

void SessionRecovery::mark_step(const checkpoint::StepPlace& place) {
  if (step_mark_ != nullptr) step_mark_->set(place);
  if (has_first_point()) node_.report_progress(progress_);
}

bool SessionRecovery::has_first_point() {
  if (progress_.has_point || !store_ || store_->points().empty()) return false;
  return progress_.has_point = true;
}

void SessionRecovery::set_done() {
  if (!store_) return;
  if (const auto done = store_->set_done(); !done) log::warning(done.error().message);
}

std::optional<std::string> SessionRecovery::lost_folder() const {
  const checkpoint::RunStore* const store = open_store_.load(std::memory_order_acquire);
  return store != nullptr ? store->lost() : std::nullopt;
}

// ---- The cluster ------------------------------------------------------------------------------------------

// At one step again and again: another try is no help.
bool SessionRecovery::lost_epoch(const Error& error) {
  if (error.code != Code::peer_lost || membership_.in_forked_child() || !membership_.recovers()) return false;
  if (!groups_.wait_until_over(patience_for_news)) {
    const std::uint64_t step = membership_.highest_step();
    if (std::exchange(links_lost_at_, step) != step) links_lost_ = 0;
    if (++links_lost_ > links_lost_max) return false;
    node_.report_link_lost(membership_.epoch(), error.message);
    groups_.wait_until_over(patience_for_new_epoch);
  }
  return groups_.wait_until_over({}).has_value() && !membership_.failure();
}

Result<> SessionRecovery::next_epoch() {
  MUSTER_TRY_VOID(groups_.next(&look_for_interruption));
  process().training.marks.begin_anew();
  log::info(fmt::format("cluster epoch {}: all {} workers are here", membership_.epoch(), size()));
  return {};
}

void SessionRecovery::report_finished_calls(std::uint64_t calls) {
  if (calls <= progress_.calls) return;
  progress_.calls = calls;
  node_.report_progress(progress_);
}

// The end may be the first point that the disk has taken: that of the start is saved beside the steps.
void SessionRecovery::report_kept_calls(std::uint64_t calls) {
  if (!has_first_point() && calls <= progress_.kept_calls) return;
  progress_.kept_calls = std::max(calls, progress_.kept_calls);
  node_.report_progress(progress_);
}

// ---- The other workers ------------------------------------------------------------------------------------

Result<std::vector<Recovery::Words>> SessionRecovery::gather(const Words& mine) {
  Words all(mine.size() * size());
  MUSTER_TRY_VOID(collectives_.call_all([&](Communicator& group) {
    return group.all_gather(mine.data(), all.data(), mine.size() * sizeof(std::uint64_t));
  }));
  std::vector<Words> rows;
  for (auto begin = all.begin(); begin != all.end(); begin += static_cast<std::ptrdiff_t>(mine.size()))
    rows.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(mine.size()));
  return rows;
}

Result<> SessionRecovery::send(std::uint32_t to, Pieces pieces) {
  return collectives_.call_all([&](Communicator& all) { return all.send(to, pieces); });
}

Result<> SessionRecovery::receive(std::uint32_t from, WritablePieces pieces) {
  return collectives_.call_all([&](Communicator& all) { return all.receive(from, pieces); });
}

Result<> SessionRecovery::explicit_collective(std::string_view what, std::optional<std::uint32_t> stages,
                                              const Collectives::GroupCall& call) {
  const auto make = [&] { return collectives_.call(stages, call); };
  // A callback's, before all have agreed where they go on.
  if (const RecoveringCall* in_flight_call = RecoveringCall::current();
      in_flight_call && in_flight_call->is_rendezvous_due())
    return fail(Code::peer_lost, fmt::format("a worker was lost before {}", what));
  if (!membership_.recovers() || membership_.in_forked_child() || calls().inside) return make();
  while (true) {
    if (membership_.roster().finished_collectives > progress_.collectives)
      return fail(Code::refused,
                  fmt::format("{}, the collective call number {} of this script, cannot be made: the other "
                              "workers have passed it before this one came back. Only calls inside of train, "
                              "eval and muster.recoverable can be made up for",
                              what, progress_.collectives + 1));
    const Result<> done = meet().and_then(make);
    if (done) break;
    if (!lost_epoch(done.error())) return done;
    MUSTER_TRY_VOID(next_epoch());
  }
  ++progress_.collectives;
  node_.report_progress(progress_);
  return {};
}

// A worker that comes back may lack what the others have; outside of calls, too, it is given that before
// anything else is done together.
Result<> SessionRecovery::meet() {
  return met_in_epoch_ == membership_.epoch() ? Result<>{} : RecoveringCall::meet(*this);
}

// ---- The end ----------------------------------------------------------------------------------------------

Result<> SessionRecovery::look_whether_left() const {
  if (!node_.has_left()) return {};
  return fail(Code::peer_lost, "this worker has left the job");
}

void SessionRecovery::end_waits_if_left() {
  if (const auto stays = look_whether_left(); !stays) groups_.end(stays.error());
}

void SessionRecovery::serve_before_leaving() {
  if (calls().inside || !membership_.recovers()) return;
  const bool is_over = groups_.wait_until_over({}).has_value();
  if (is_over && !groups_.next([this] { return look_whether_left(); })) return;
  if (std::exchange(served_in_epoch_, membership_.epoch()) == membership_.epoch()) return;
  set_while_waiting([] { Session::current()->recovery().end_waits_if_left(); });
  if (const auto met = meet(); !met) log::debug(met.error().message);
  set_while_waiting(nullptr);
}

}  // namespace muster::train
