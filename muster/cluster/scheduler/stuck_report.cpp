#include "muster/cluster/scheduler/stuck_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "muster/cluster/scheduler/job.h"
#include "muster/cluster/scheduler/status.h"

namespace muster::cluster {
namespace {

using std::chrono::seconds;

constexpr Duration silence_worth_telling = seconds(2);
constexpr std::size_t groups_shown_max = 16;
constexpr std::size_t slow_described_max = 2;

// Who waits comes last; of two who wait, the one who is behind comes first.
struct Place {
  bool waits = false;
  std::uint64_t number = 0;
  std::string text = {};
  auto operator<=>(const Place&) const = default;
};

std::string silence_text(const Job& job, const Peer& peer) {
  const Duration silence = silence_of(job, peer);
  return silence < silence_worth_telling ? ""
                                         : fmt::format(", no heartbeat for {:.3g} s", in_seconds(silence));
}

// A parameter server is worth a line where workers wait on it, or where it says nothing itself.
bool holds_up(const Job& job, const Peer& peer) {
  return peer.member.role == Role::server && !peer.has_left() &&
         (peer.said.activity.serving.waiting > 0 || silence_of(job, peer) >= silence_worth_telling);
}

}  // namespace

StuckReport::StuckReport(Job& job) : job_(job), watch_(job.config.stuck_limit) {}

void StuckReport::begin_epoch() { watch_.begin(job_.now); }

Duration StuckReport::pause() const { return watch_.pause(job_.now); }

void StuckReport::note(Peer& peer, const message::Beat& beat, std::uint64_t epoch) {
  peer.said.activity = beat.activity;
  // What was finished before a recovery is void.
  if (job_.config.recovers && epoch != job_.ledger.epoch) return;
  const StuckWatch::Mark mark{beat.step == no_step ? 0 : beat.step, beat.activity.finished};
  const StuckWatch::Mark before = std::exchange(peer.said.mark, mark);
  if (!job_.is(JobState::running) || peer.member.role != Role::worker) return;
  if (const auto pause = watch_.moved(before, mark, job_.now))
    job_.tell_all<message::Stuck>(
        fmt::format("the job goes on, after {:.3g} s without a step", in_seconds(*pause)));
}

void StuckReport::check() {
  const auto slowest = slowest_phase();
  if (!slowest || !watch_.is_due(*slowest, job_.now)) return;
  const auto usual = watch_.usual();
  job_.tell_all<message::Stuck>(
      fmt::format("no step has been finished for {:.3g} s{}: {}", in_seconds(watch_.pause(job_.now)),
                  usual ? fmt::format(" (one is usually seen after {:.2g} s)", in_seconds(*usual)) : "",
                  who_waits_for_whom()));
  job_.observers.stacks.keep_all();
}

// The most patient phase of the ranks that wait for none. Nothing where no rank waits for another and the
// scripts are busy with what is no step.
std::optional<WorkPhase> StuckReport::slowest_phase() const {
  bool someone_waits = false;
  std::set<WorkPhase> phases;  // of those who do not
  for (const auto& [id, peer] : job_.peers) {
    if (peer.has_left() || peer.member.role != Role::worker) continue;
    if (waits(peer.said.activity))
      someone_waits = true;
    else
      phases.insert(peer.said.activity.phase);
  }
  const bool makes_steps = phases.contains(WorkPhase::computing) || phases.contains(WorkPhase::reading_data);
  if (!someone_waits && !makes_steps) return std::nullopt;
  if (phases.empty()) return WorkPhase::computing;
  return *std::max_element(phases.begin(), phases.end(),
                           [this](WorkPhase a, WorkPhase b) { return watch_.limit(a) < watch_.limit(b); });
}

// "rank 2: in data loading at step 41; ranks 0, 1, 3: in all_reduce 18 (rank 2 is …)".
std::string StuckReport::who_waits_for_whom() const {
  std::map<Place, std::vector<std::uint32_t>> groups;
  std::vector<std::string> slow;
  for (const auto& [id, peer] : job_.peers) {
    if (peer.member.role != Role::worker) continue;
    const bool is_waiting = waits(peer.said.activity) && !peer.has_left();
    std::string text = peer.has_left() ? "has left the job" : to_string(peer.said.activity);
    if (!is_waiting && !peer.has_left() && peer.said.step != no_step)
      text += fmt::format(" at step {}", peer.said.step);
    if (!peer.has_left()) text += silence_text(job_, peer);
    groups[{is_waiting, is_waiting ? peer.said.activity.call_number : 0, std::move(text)}].push_back(
        peer.member.rank);
    if (!is_waiting && !peer.has_left()) slow.push_back(describe(peer));
  }
  std::vector<std::string> lines;
  for (auto& [place, ranks] : groups) {
    std::sort(ranks.begin(), ranks.end());
    if (lines.size() < groups_shown_max)
      lines.push_back(fmt::format("{}: {}", ranks_text(ranks), place.text));
  }
  for (const auto& [id, peer] : job_.peers)
    if (lines.size() < groups_shown_max && holds_up(job_, peer))
      lines.push_back(fmt::format("server {}: {}{}", peer.member.rank, to_string(peer.said.activity),
                                  silence_text(job_, peer)));
  std::string text = fmt::format("{}", fmt::join(lines, "; "));
  if (groups.size() > groups_shown_max) text += "; …";
  if (slow.size() <= slow_described_max && !slow.empty() && groups.size() > 1)
    text += fmt::format(" ({})", fmt::join(slow, ", "));
  return text;
}

}  // namespace muster::cluster
