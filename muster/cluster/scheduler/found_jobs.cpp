#include "muster/cluster/scheduler/found_jobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "muster/cluster/scheduler/job.h"

namespace muster::cluster {
namespace {

constexpr std::size_t lines_max = 8;
constexpr std::uint64_t epoch_found_max = std::numeric_limits<std::uint64_t>::max() / 2;
constexpr auto time_for_members = std::chrono::seconds(5);  // who live try at least every second

constexpr std::string_view how_to_choose =
    "\nTo go on with a job, give each worker the MS_RECOVERY_PATH with its points, as many workers as it "
    "has, and no other job's points. To give points up, remove them with `muster checkpoint rm PATH`, or set "
    "MUSTER_FRESH=1 for every process of one start";

std::vector<const FoundJob*> unfinished(const Job& job, const MembershipReport& memory) {
  std::vector<const FoundJob*> jobs;
  for (const FoundJob& found : memory.found)
    if (!found.is_done && found.job_id != job.config.ended_job_id &&
        std::ranges::find(job.ledger.given_up, found.job_id) == job.ledger.given_up.end())
      jobs.push_back(&found);
  return jobs;
}

}  // namespace

void FoundJobs::forgive(Duration pause) {
  if (members_due_) *members_due_ += pause;
}

std::vector<const Peer*> FoundJobs::finders(const std::vector<PeerId>& order) const {
  std::vector<const Peer*> finders;
  for (const PeerId id : order)
    if (const Peer& peer = job_.peers.at(id); !unfinished(job_, peer.memory).empty())
      finders.push_back(&peer);
  return finders;
}

// A line for each worker that has found something, and how many have not.
std::string FoundJobs::who_found_what(const std::vector<const Peer*>& finders) const {
  std::vector<std::string> lines;
  for (const Peer* peer : finders)
    for (const FoundJob* found : unfinished(job_, peer->memory))
      if (lines.size() < lines_max)
        lines.push_back(fmt::format("\n  {} has {}", describe(*peer), describe(*found)));
  const std::size_t others =
      job_.config.worker_num - std::min<std::size_t>(job_.config.worker_num, finders.size());
  if (others > 0) lines.push_back(fmt::format("\n  {} of the workers have none", others));
  return fmt::format("{}", fmt::join(lines, ""));
}

bool FoundJobs::settle(const std::vector<PeerId>& order) {
  const auto finders = this->finders(order);
  if (finders.empty()) return true;
  const auto is_fresh = [&](PeerId id) { return job_.peers.at(id).memory.fresh; };
  if (job_.config.fresh || std::ranges::any_of(order, is_fresh)) return give_up(order, finders);
  std::set<std::uint64_t> ids;
  const FoundJob* found = nullptr;
  bool fits = true;
  for (const Peer* peer : finders) {
    for (const FoundJob* job : unfinished(job_, peer->memory)) {
      ids.insert(job->job_id);
      fits = fits && job->worker_num == job_.config.worker_num;
      if (found == nullptr || job->is_in_use) found = job;
    }
  }
  if (ids.size() == 1 && fits) {
    if (waits_for_members(*found, finders)) return false;
    adopt(*found, finders);
    return true;
  }
  job_.fail({Code::refused,
             fmt::format("there are recovery points of {} that this job of {} worker{} is not:{}{}",
                         ids.size() == 1 ? "an unfinished job" : "unfinished jobs", job_.config.worker_num,
                         job_.config.worker_num == 1 ? "" : "s", who_found_what(finders), how_to_choose),
             exit_code_refused});
  return false;
}

// A process holds its folder, which should come, or is ending. If not, it is a job of another scheduler.
bool FoundJobs::waits_for_members(const FoundJob& found, const std::vector<const Peer*>& finders) {
  if (!found.is_in_use) return false;
  if (!members_due_) members_due_ = job_.now + time_for_members;
  if (job_.now >= *members_due_)
    job_.fail(
        {Code::refused,
         fmt::format(
             "processes of an unfinished job live that do not come to this scheduler. Is it another one's? "
             "Then give this job an MS_RECOVERY_PATH of its own. If they were ending, start again:{}",
             who_found_what(finders)),
         exit_code_refused});
  return true;
}

bool FoundJobs::give_up(const std::vector<PeerId>& order, const std::vector<const Peer*>& finders) {
  std::vector<std::string> without;
  if (!job_.config.fresh) without.push_back("the scheduler");
  for (const PeerId id : order)
    if (!job_.peers.at(id).memory.fresh && without.size() < lines_max)
      without.push_back(describe(job_.peers.at(id)));
  if (!without.empty()) {
    job_.fail(
        {Code::refused,
         fmt::format(
             "MUSTER_FRESH=1 is set at some processes of the job and not at {}. Set it everywhere to give "
             "up what was found, or nowhere to go on with it:{}",
             fmt::join(without, ", "), who_found_what(finders)),
         exit_code_refused});
    return false;
  }
  job_.log(log::Level::warning, fmt::format("MUSTER_FRESH=1: given up is{}", who_found_what(finders)));
  for (const Peer* peer : finders)
    for (const FoundJob& found : peer->memory.found) job_.ledger.given_up.push_back(found.job_id);
  return true;
}

void FoundJobs::adopt(const FoundJob& found, const std::vector<const Peer*>& finders) {
  Ledger& ledger = job_.ledger;
  ledger.job_id = found.job_id;
  ledger.epoch = ledger.epoch_min = job_.config.adopted_epoch;
  ledger.is_recorded = false;
  ledger.has_points = true;
  ledger.finished_calls = std::numeric_limits<std::uint64_t>::max();
  std::optional<std::uint64_t> seed;
  for (const Peer* peer : finders) {
    const FoundJob* its = peer->memory.find(found.job_id);
    // Clocks may go back, and no process takes a folder from one of a later epoch.
    ledger.epoch = ledger.epoch_min = std::max(ledger.epoch, std::min(its->epoch, epoch_found_max) + 1);
    ledger.finished_calls = std::min(ledger.finished_calls, its->finished_calls);
    if (!seed) seed = its->seed;
  }
  ledger.seed = seed.value_or(ledger.seed);
  job_.log(
      log::Level::warning,
      fmt::format("there is no log of an unfinished job, and points of one are there. It goes "
                  "on:{}{}",
                  who_found_what(finders), seed ? "" : "\n  Its seed is not known: another one is drawn"));
}

bool takes_rank_of_its_points(const Job& job, PeerId id, std::vector<std::optional<PeerId>>& places) {
  const FoundJob* found = job.peers.at(id).memory.find(job.ledger.job_id);
  if (found == nullptr) return false;
  for (const std::uint32_t rank : found->ranks) {
    if (rank >= places.size() || places[rank]) continue;
    places[rank] = id;
    return true;
  }
  return false;
}

// --- in a job that is known --------------------------------------------------------------------------------

bool refuses_foreign_points(Job& job, PeerId id, const Member& member, const MembershipReport& memory) {
  if (job.is(JobState::forming)) return false;
  if (memory.fresh)
    job.log(
        log::Level::warning,
        fmt::format(
            "{} '{}' has MUSTER_FRESH=1, and job {:016x} goes on: to give it up, set it at the scheduler too",
            to_string(member.role), member.node_id, job.ledger.job_id));
  const auto found = unfinished(job, memory);
  if (found.empty() || memory.fresh || memory.find(job.ledger.job_id) != nullptr) return false;
  const std::string reason = fmt::format(
      "this is job {:016x} of {} workers, and it has points of another one that is unfinished: {}{}",
      job.ledger.job_id, job.config.worker_num, describe(*found.front()), how_to_choose);
  job.turn_down(id, member, reason);
  const bool is_alone = std::ranges::all_of(job.peers, [](const auto& entry) {
    const Peer& peer = entry.second;  // who is awaited may live, and is on its way
    return peer.has_left() || peer.connection == PeerConnection::closed;
  });
  if (is_alone)
    job.fail(
        {Code::refused,
         fmt::format("{} '{}' at {}: {}", to_string(member.role), member.node_id, member.address, reason),
         exit_code_refused});
  return true;
}

bool a_process_holds_the_job(Job& job) {
  if (!job.ledger.has_points) return true;
  std::vector<std::string> lines;
  for (const Seat& seat : job.seats.all()) {
    if (seat.peer == 0 || seat.member.role != Role::worker) continue;
    const Peer& peer = job.peers.at(seat.peer);
    if (peer.epoch_member <= job.ledger.epoch || peer.memory.find(job.ledger.job_id) != nullptr) return true;
    if (lines.size() < lines_max) lines.push_back(describe(peer));
  }
  job.fail(
      {Code::not_found,
       fmt::format(
           "job {:016x} has kept recovery points, and now no worker has any below its MS_RECOVERY_PATH: {}. "
           "Bring the folders back and start all processes again; or set MUSTER_FRESH=1 for every process of "
           "one start to begin a new job",
           job.ledger.job_id, fmt::join(lines, ", ")),
       exit_code_refused});
  return false;
}

}  // namespace muster::cluster
