// Forming of a job: which processes may register, which rank each has, and what all are told meanwhile.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "muster/cluster/fingerprint.h"
#include "muster/cluster/scheduler.h"
#include "muster/cluster/variables.h"

namespace muster::cluster {
namespace {

using std::chrono::seconds;

constexpr Duration rejection_lines_interval = seconds(10);

}  // namespace

// --- who comes ---------------------------------------------------------------------------------------------

void SchedulerMachine::register_node(PeerId id, const Message& message, const message::Register& request) {
  forget_observer(id);
  if (const auto known = peers_.find(id); known != peers_.end()) {  // said twice
    if (!known->second.has_left() && phase_ == Phase::forming) greet(id, known->second);
    return;
  }
  if (config_.recovers) return register_recovering(id, message, request);
  if (const auto reason = reason_to_refuse(message, request)) return turn_down(id, request.member, *reason);
  accept(id, {.member = request.member,
              .key = key_of(request.secret, request.member),
              .strict = request.strict,
              .traits = request.traits});
  form_if_complete();
}

std::optional<std::string> SchedulerMachine::reason_to_refuse(const Message& message,
                                                              const message::Register& request) const {
  const Member& member = request.member;
  const bool is_stale = message.job_id != config_.job_id || message.epoch != epoch_;
  if (message.job_id != 0 && is_stale)
    return fmt::format("it belongs to epoch {} of another job or another time; this is epoch {}",
                       message.epoch, epoch_);
  if (phase_ == Phase::telling)
    return failure_ ? fmt::format("the job has ended: {}", failure_->message) : "the job has ended";
  if (auto reason = unusable(request)) return reason;
  if (const auto found = by_name_.find({member.role, member.node_id}); found != by_name_.end()) {
    const Peer& peer = peer_at(found->second);
    if (!peer.has_left()) return duplicate_id(peer.member);
  }
  if (auto reason = impersonation(member, key_of(request.secret, member))) return reason;
  return no_room(member);
}

// Why a process with these settings can be part of no job of this scheduler.
std::optional<std::string> SchedulerMachine::unusable(const message::Register& request) const {
  const Member& member = request.member;
  const auto differs = [](std::string_view variable, std::uint32_t there, std::uint32_t here) {
    return fmt::format("{} is {} there and {} at the scheduler; it must be the same everywhere", variable,
                       there, here);
  };
  const auto wrong_number = [&](Role role, std::string_view variable, std::uint32_t there,
                                std::uint32_t here) {
    return fmt::format("wrong {} number: {}", to_string(role), differs(variable, there, here));
  };
  if (member.role == Role::scheduler) return "there is one scheduler, and this is it";
  if (!is_node_id(member.node_id)) return "its node id (MS_NODE_ID) is empty, too long or not printable";
  if (request.worker_num != config_.worker_num)
    return wrong_number(Role::worker, "MS_WORKER_NUM", request.worker_num, config_.worker_num);
  if (request.server_num != config_.server_num)
    return wrong_number(Role::server, "MS_SERVER_NUM", request.server_num, config_.server_num);
  if (config_.recovers && request.recovers && (member.incarnation == 0 || !is_secret(request.secret)))
    return "it has no incarnation or no secret";
  if (request.recovers != config_.recovers)
    return differs("MS_ENABLE_RECOVERY", request.recovers ? 1 : 0, config_.recovers ? 1 : 0);
  return std::nullopt;
}

std::optional<std::string> SchedulerMachine::no_room(const Member& member) const {
  const auto present = present_.find(member.role);
  if (present == present_.end() || present->second < wanted(member.role)) return std::nullopt;
  return fmt::format("surplus: the job has all of its {} {}s ({}); this one is not needed",
                     wanted(member.role), to_string(member.role),
                     member.role == Role::worker ? "MS_WORKER_NUM" : "MS_SERVER_NUM");
}

// The reason, and who is absent: one of those may have been started with the wrong id.
std::string SchedulerMachine::duplicate_id(const Member& holder) const {
  std::vector<std::uint32_t> absent;
  for (std::uint32_t rank = 0; phase_ == Phase::forming && rank < wanted(holder.role); ++rank)
    if (!by_name_.contains({holder.role, fmt::format("{}", rank)})) absent.push_back(rank);
  const std::string_view noun = holder.role == Role::worker ? "rank" : "server";
  return fmt::format("duplicate id: {}{}", taken_by(holder),
                     absent.empty() ? ""
                                    : fmt::format("; absent {} {}", absent.size() == 1 ? "is" : "are",
                                                  numbered(noun, absent)));
}

void SchedulerMachine::turn_down(PeerId id, const Member& member, const std::string& reason) {
  if (attempts_.refused(member, reason, now_))
    log(log::Level::warning, fmt::format("refused {} '{}' from {}: {}", to_string(member.role),
                                         member.node_id, member.address, reason));
  refuse(id, reason);
}

// Members find themselves, and each other, in a roster by the incarnation: it is one process's for ever.
std::optional<std::string> SchedulerMachine::impersonation(const Member& member,
                                                           const ProcessKey& key) const {
  const auto is_it = [&](const auto& holder) {
    return holder.member.incarnation == member.incarnation && holder.key != key;
  };
  const auto is_taken = [&] {
    const auto peer = by_incarnation_.find(member.incarnation);
    return (peer != by_incarnation_.end() && is_it(peer_at(peer->second))) ||
           std::ranges::any_of(newcomers_, is_it) || std::ranges::any_of(seats_.all(), is_it);
  };
  if (member.incarnation == 0 || !is_taken()) return std::nullopt;
  return "it says that it is a process that has registered before, and does not know what only that one "
         "knows";
}

void SchedulerMachine::greet(PeerId id, Peer& peer) {
  peer.heard = peer.spoke = now_;
  send(id, message::Accept{beat_interval_for(config_.node_timeout), config_.pid, config_.process_space});
}

Peer& SchedulerMachine::accept(PeerId id, Registrant registrant) {
  Peer& peer = peers_[id] = {std::move(registrant)};
  const Member& member = peer.member;
  if (member.incarnation != 0) by_incarnation_[member.incarnation] = id;
  greet(id, peer);
  peer.epoch_accepted = peer.epoch_member = epoch_;
  if (phase_ == Phase::forming) {
    order_.push_back(id);
    by_name_[{member.role, member.node_id}] = id;
    ++present_[member.role];
    attempts_.came(member);
  }
  watch(id, peer);
  log(log::Level::debug, fmt::format("{} registered", describe(peer)));
  return peer;
}

void SchedulerMachine::watch(PeerId id, Peer& peer) {
  if (!shares_pids(peer.member.process_space, config_.process_space) || peer.member.pid <= 0) return;
  peer.process.watch_id = id;
  actions_.push_back(scheduler_action::Watch{id, peer.member.pid});
}

bool SchedulerMachine::is_complete() const {
  const auto has_all = [&](Role role) {
    const auto present = present_.find(role);
    return (present == present_.end() ? 0 : present->second) == wanted(role);
  };
  return has_all(Role::worker) && has_all(Role::server);
}

void SchedulerMachine::form_if_complete() {
  if (!is_complete() || (config_.recovers && !settle_job())) return;
  auto roster = std::make_shared<Roster>();
  roster->epoch = epoch_;
  roster->job_id = config_.job_id;
  roster->seed = config_.seed;
  roster->workers = rank_members(Role::worker, config_.worker_num);
  roster->servers = rank_members(Role::server, config_.server_num);
  roster->recovers = config_.recovers;
  roster->finished_calls = finished_calls_;
  if (!check_traits()) return;
  seats_ = Seats(*roster);
  for (const auto& [id, peer] : peers_) {
    Seat& seat = *seats_.find(peer.member.role, peer.member.rank);
    seat.peer = id;
    seat.key = peer.key;
  }
  begin_epoch(std::move(roster));
  log(log::Level::info, fmt::format("all {} workers and {} servers have come after {:.3g} s",
                                    config_.worker_num, config_.server_num, in_seconds(now_ - start_)));
}

void SchedulerMachine::begin_epoch(std::shared_ptr<const Roster> roster) {
  take(std::move(roster));
  phase_ = Phase::running;
  stuck_.begin(now_);
  if (config_.recovers) {
    record_job();
    record(record::Formed{roster_, seats_.keys()});
  }
  for (auto& [id, peer] : peers_) {
    if (peer.state == PeerState::ready) peer.state = PeerState::present;
    peer.epoch_told = now_;
    peer.said.mark = {};
    if (!peer.has_left()) share(id, roster_ready_);
  }
}

void SchedulerMachine::take(std::shared_ptr<const Roster> roster) {
  roster_ = std::move(roster);
  epoch_ = roster_->epoch;
  left_in_epoch_.reset();
  roster_ready_ = message_of(message::RosterReady{roster_});
}

// Ids that are ranks first, then who has found points of a free one, the others into the gaps in the order in
// which they came.
std::vector<Member> SchedulerMachine::rank_members(Role role, std::uint32_t count) {
  std::vector<std::optional<PeerId>> places(count);
  std::vector<PeerId> others;
  for (const PeerId id : order_) {
    const Member& member = peer_at(id).member;
    if (member.role != role) continue;
    if (const auto rank = rank_asked(member.node_id, count))
      places[*rank] = id;
    else
      others.push_back(id);
  }
  std::erase_if(others, [&](PeerId id) { return takes_rank_of_its_points(id, places); });
  auto next = others.begin();
  std::vector<Member> members;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    const PeerId id = places[rank] ? *places[rank] : *next++;
    Peer& peer = peer_at(id);
    peer.member.rank = rank;
    peer.has_rank = true;
    members.push_back(peer.member);
  }
  return members;
}

// --- what is said meanwhile --------------------------------------------------------------------------------

void SchedulerMachine::note_rejected(const scheduler_event::Rejected& event) {
  if (const auto known = peers_.find(event.peer); known != peers_.end())
    return log(log::Level::warning,
               fmt::format("the connection of {} broke: {}", describe(known->second), event.reason));
  const bool is_news = event.claims ? attempts_.refused(*event.claims, event.reason, now_)
                                    : attempts_.note_rejected(event.address, event.reason, now_, event.count);
  if (phase_ == Phase::forming) return;  // the table has it
  if (phase_ == Phase::recovering && is_news && !refused_meanwhile().empty()) {
    vacancies_changed_ = true;  // all are told at once whom they wait for, and why in vain
    return;
  }
  if (!is_news || now_ < next_rejection_line_) return;
  next_rejection_line_ = now_ + rejection_lines_interval;
  log(log::Level::warning, fmt::format("a connection from {} was closed: {}", event.address, event.reason));
}

FormingView SchedulerMachine::view() const {
  FormingView view{
      .worker_num = config_.worker_num, .server_num = config_.server_num, .attempts = &attempts_};
  for (const PeerId id : order_)
    if (const Peer& peer = peer_at(id); !peer.is_gone()) view.present.push_back(&peer.member);
  for (std::string& line : differences()) view.differences.push_back("differs: " + line);
  return view;
}

// "2 of 4 workers came, 2 missing", and a line for each problem.
std::string SchedulerMachine::whole_table() const {
  const FormingView seen = view();
  return attendance(seen) + forming_table(seen, now_);
}

void SchedulerMachine::check_forming() {
  if (members_due_ && is_complete()) return form_if_complete();
  if (now_ >= start_ + config_.topo_timeout)
    return fail({Code::timeout,
                 fmt::format("the job is not complete after {:.3g} s (MS_TOPO_TIMEOUT)",
                             in_seconds(config_.topo_timeout)),
                 exit_code_timeout});
  if (now_ < announcements_.due()) return;
  if (!announcements_.says(forming_table(view(), std::nullopt), now_)) return;
  tell_all<message::Waiting>(
      fmt::format("waiting since {:.3g} s: {}", in_seconds(now_ - start_), whole_table()));
}

std::vector<FingerprintSource> SchedulerMachine::sources(Role role) const {
  std::vector<FingerprintSource> sources;
  for (const auto& [id, peer] : peers_) {
    const Member& member = peer.member;
    if (member.role != role || peer.is_gone()) continue;
    const auto number = peer.has_rank ? member.rank : rank_asked(member.node_id, wanted(role));
    if (role == Role::worker)
      sources.push_back({.rank = number, .name = "node " + member.node_id, .traits = &peer.traits});
    else
      sources.push_back({.name = "server " + (number ? fmt::format("{}", *number) : member.node_id),
                         .traits = &peer.traits});
  }
  return sources;
}

// Workers are compared with workers, servers with servers.
std::vector<std::string> SchedulerMachine::differences() const {
  std::vector<std::string> lines = trait_differences(sources(Role::worker));
  for (std::string& line : trait_differences(sources(Role::server))) lines.push_back(std::move(line));
  return lines;
}

bool SchedulerMachine::is_strict() const {
  return config_.strict ||
         std::any_of(peers_.begin(), peers_.end(), [](const auto& entry) { return entry.second.strict; });
}

// Before the first step of an epoch: names what differs, and ends the job where that is asked for.
bool SchedulerMachine::check_traits() {
  const std::vector<std::string> lines = differences();
  if (lines.empty() || lines == differences_told_) return true;
  differences_told_ = lines;
  const std::string text = fmt::format("the processes of this job differ: {}", fmt::join(lines, "; "));
  if (!is_strict()) {
    tell_all<message::Waiting>(text);
    return true;
  }
  fail({Code::invalid_argument, text + ". Make them alike, or unset MUSTER_STRICT to get a warning only",
        exit_code_configuration});
  return false;
}

// A process that comes back to a strict job is turned away for what the others would end by.
std::optional<std::string> SchedulerMachine::misfit(const Newcomer& newcomer) const {
  if (!newcomer.strict && !is_strict()) return std::nullopt;
  std::vector<FingerprintSource> all = sources(newcomer.member.role);
  if (all.empty()) return std::nullopt;
  const std::vector<std::string> before = trait_differences(all);
  all.push_back({.name = "this process", .traits = &newcomer.traits});
  const std::vector<std::string> lines = trait_differences(all);
  if (lines.size() <= before.size()) return std::nullopt;
  return fmt::format("it differs from the others (MUSTER_STRICT=1): {}", fmt::join(lines, "; "));
}

}  // namespace muster::cluster
