// What the scheduler knows of where its processes are: for people who look at the job (muster status), for
// those who look at the network (muster doctor), and for all when the job does not go on.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "muster/cluster/scheduler.h"
#include "muster/cluster/wire.h"

namespace muster::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration silence_worth_telling = seconds(2);
constexpr Duration status_lifetime = milliseconds(250);
constexpr std::size_t groups_shown_max = 16;
constexpr std::size_t slow_described_max = 2;

milliseconds whole(Duration duration) { return std::chrono::duration_cast<milliseconds>(duration); }

// Who waits comes last; of two who wait, the one who is behind comes first.
struct Place {
  bool waits = false;
  std::uint64_t number = 0;
  std::string text = {};
  auto operator<=>(const Place&) const = default;
};

}  // namespace

// --- a job that does not go on -----------------------------------------------------------------------------

void SchedulerMachine::note_activity(Peer& peer, const message::Beat& beat, std::uint64_t epoch) {
  peer.activity = beat.activity;
  if (config_.recovers && epoch != epoch_) return;  // what was finished before a recovery is void
  const StuckWatch::Mark mark{beat.step == no_step ? 0 : beat.step, beat.activity.finished};
  const StuckWatch::Mark before = std::exchange(peer.mark, mark);
  if (phase_ != Phase::running || peer.member.role != Role::worker) return;
  if (const auto pause = stuck_.moved(before, mark, now_))
    tell_all<message::Stuck>(
        fmt::format("the job goes on, after {:.3g} s without a step", in_seconds(*pause)));
}

void SchedulerMachine::check_stuck() {
  const auto slowest = slowest_phase();
  if (!slowest || !stuck_.is_due(*slowest, now_)) return;
  const auto usual = stuck_.usual();
  tell_all<message::Stuck>(
      fmt::format("no step has been finished for {:.3g} s{}: {}", in_seconds(stuck_.pause(now_)),
                  usual ? fmt::format(" (one is usually seen after {:.2g} s)", in_seconds(*usual)) : "",
                  who_waits_for_whom()));
}

// The most patient phase of the ranks that wait for none. Nothing where no rank waits for another and the
// scripts are busy with what is no step.
std::optional<WorkPhase> SchedulerMachine::slowest_phase() const {
  bool someone_waits = false;
  std::set<WorkPhase> phases;  // of those who do not
  for (const auto& [id, peer] : peers_) {
    if (peer.left || peer.member.role != Role::worker) continue;
    if (peer.activity.call != CallKind::none)
      someone_waits = true;
    else
      phases.insert(peer.activity.phase);
  }
  const bool makes_steps = phases.contains(WorkPhase::computing) || phases.contains(WorkPhase::reading_data);
  if (!someone_waits && !makes_steps) return std::nullopt;
  if (phases.empty()) return WorkPhase::computing;
  return *std::max_element(phases.begin(), phases.end(),
                           [this](WorkPhase a, WorkPhase b) { return stuck_.limit(a) < stuck_.limit(b); });
}

// Of one that a restarted scheduler awaits: since it listens.
Duration SchedulerMachine::silence_of(const Peer& peer) const { return now_ - std::max(peer.spoke, start_); }

std::string SchedulerMachine::silence_text(const Peer& peer) const {
  const Duration silence = silence_of(peer);
  return silence < silence_worth_telling ? ""
                                         : fmt::format(", no heartbeat for {:.3g} s", in_seconds(silence));
}

// "rank 2: in data loading at step 41; ranks 0, 1, 3: in all_reduce 18 (rank 2 is …)".
std::string SchedulerMachine::who_waits_for_whom() const {
  std::map<Place, std::vector<std::uint32_t>> groups;
  std::vector<std::string> slow;
  for (const auto& [id, peer] : peers_) {
    if (peer.member.role != Role::worker) continue;
    const bool waits = peer.activity.call != CallKind::none && !peer.left;
    std::string text = peer.left ? "has left the job" : to_string(peer.activity);
    if (!waits && !peer.left && peer.step != no_step) text += fmt::format(" at step {}", peer.step);
    if (!peer.left) text += silence_text(peer);
    groups[{waits, waits ? peer.activity.call_number : 0, std::move(text)}].push_back(peer.member.rank);
    if (!waits && !peer.left) slow.push_back(describe(peer));
  }
  std::vector<std::string> lines;
  for (auto& [place, ranks] : groups) {
    std::sort(ranks.begin(), ranks.end());
    if (lines.size() < groups_shown_max)
      lines.push_back(fmt::format("{}: {}", ranks_text(ranks), place.text));
  }
  std::string text = fmt::format("{}", fmt::join(lines, "; "));
  if (groups.size() > groups_shown_max) text += "; …";
  if (slow.size() <= slow_described_max && !slow.empty() && groups.size() > 1)
    text += fmt::format(" ({})", fmt::join(slow, ", "));
  return text;
}

// --- observers
// ----------------------------------------------------------------------------------------------

bool SchedulerMachine::serve_observer(PeerId id, const Message& message) {
  if (std::holds_alternative<message::StatusRequest>(message.body)) {
    tell_status(id);
    return true;
  }
  if (const auto* echo = std::get_if<message::Echo>(&message.body)) {
    if (observers_.may_echo(id, echo->filling.size()))
      send(id, *echo);
    else
      refuse(id, fmt::format("it has measured with more than {} bytes", echo_budget_bytes));
    return true;
  }
  if (const auto* meeting = std::get_if<message::MeetDoctors>(&message.body)) {
    if (observers_.meet(id, meeting->self))
      tell_doctors();
    else
      refuse(id, fmt::format("it is here already, or {} doctors are", doctors_max));
    return true;
  }
  return false;
}

// All who ask within a moment get the same words, which then cost once what they cost.
void SchedulerMachine::tell_status(PeerId id) {
  if (status_ == nullptr || now_ >= status_until_) {
    status_ = message_of(status());
    status_until_ = now_ + status_lifetime;
  }
  share(id, status_);
  actions_.push_back(scheduler_action::Close{id});
  forget_observer(id);
}

// It is gone, or no observer any more: no Closed follows a connection that is closed from here.
void SchedulerMachine::forget_observer(PeerId id) {
  if (observers_.left(id)) tell_doctors();
}

void SchedulerMachine::tell_doctors() {
  message::Doctors all;
  for (const auto& [id, doctor] : observers_.doctors()) all.doctors.push_back(doctor);
  for (const auto& [id, doctor] : observers_.doctors()) send(id, all);
}

message::Status SchedulerMachine::status() const {
  using State = message::Status::State;
  message::Status status{.recovers = config_.recovers,
                         .worker_num = config_.worker_num,
                         .server_num = config_.server_num,
                         .age = whole(now_ - start_)};
  switch (phase_) {
    case Phase::forming:
      status.state = State::forming;
      status.text = whole_table();
      break;
    case Phase::running:
      status.state = State::running;
      status.without_step = whole(stuck_.pause(now_));
      break;
    case Phase::recovering:
      status.state = State::recovering;
      status.text = waiting_text();
      break;
    case Phase::telling:
    case Phase::ended:
      status.state = State::ended;
      status.text = failure_ ? failure_->message : "all workers are done";
      break;
  }
  for (const auto& [id, peer] : peers_) {
    if (status.nodes.size() == status_nodes_max) break;
    message::Status::Node& node = status.nodes.emplace_back();
    node = {.role = peer.member.role,
            .node_id = peer.member.node_id,
            .rank = peer.member.rank,
            .address = peer.member.address,
            .pid = peer.member.pid,
            .has_rank = peer.ranked,
            .is_connected = !peer.closed,
            .has_left = peer.left,
            .epoch = peer.epoch,
            .step = peer.step,
            .activity = peer.activity,
            .silence = whole(silence_of(peer))};
  }
  std::stable_sort(status.nodes.begin(), status.nodes.end(), [](const auto& a, const auto& b) {
    return std::pair(a.role, a.rank) < std::pair(b.role, b.rank);
  });
  return status;
}

}  // namespace muster::cluster
