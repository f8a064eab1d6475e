#include "muster/server/worker_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::server {

WorkerMachine::WorkerMachine(WorkerConfig config)
    : config_(std::move(config)),
      holders_{.servers = config_.server_num, .copies = config_.copies},
      peers_(holders_.count()),
      unkept_(holders_.servers) {}

// A server may have come back on an empty disk, with what the other holder of its rows has: what it said
// before of pushes that are kept is void.
ToServerMessages WorkerMachine::begin(std::uint64_t generation, std::uint64_t step,
                                      std::optional<std::uint64_t> origin) {
  MUSTER_CHECK(generation > generation_, "a generation of parameter servers begins twice");
  generation_ = generation;
  begin_ = next_ = step;
  origin_ = origin;
  pulls_.clear();
  failure_.reset();
  for (std::uint32_t share = 0; share < holders_.servers; ++share) {
    Pushes& unkept = unkept_[share];
    std::erase_if(unkept, [&](const Push& push) { return push.step >= step; });
    for (Push& push : unkept) push.generation = generation;
    const std::uint64_t kept = std::min(kept_of(share), step);
    for (std::uint32_t holder = share; holder < holders_.count(); holder += holders_.servers)
      peers_[holder].kept = kept;
  }
  ToServerMessages messages;
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder) {
    const auto hello = retry(holder);
    messages.insert(messages.end(), hello.begin(), hello.end());
  }
  return messages;
}

ToServerMessages WorkerMachine::ask(const PullPlace& place, std::vector<Body> bodies, bool is_ahead) {
  MUSTER_CHECK(bodies.size() == holders_.servers, "a pull has one body for each share");
  const std::uint32_t count = holders_.count();
  bodies.resize(count, config_.nothing);
  PendingPull& pending = pulls_[place];
  pending = {.is_ahead = is_ahead,
             .bodies = std::move(bodies),
             .serials = std::vector<std::uint32_t>(count),
             .early = std::vector<std::optional<Rows>>(count),
             .rows = std::vector<std::optional<Rows>>(count)};
  ToServerMessages messages;
  for (std::uint32_t holder = 0; holder < count; ++holder)
    if (peers_[holder].is_welcome) messages.push_back({holder, pull_message(place, pending, holder)});
  return messages;
}

Pull WorkerMachine::pull_message(const PullPlace& place, PendingPull& pending, std::uint32_t holder) {
  pending.serials[holder] = ++serial_;
  pending.early[holder].reset();
  return {.worker = config_.worker,
          .generation = generation_,
          .step = place.first,
          .serial = serial_,
          .is_ahead = pending.is_ahead,
          .body = pending.bodies[holder]};
}

Push WorkerMachine::push_of(Body body) const {
  return {.worker = config_.worker, .generation = generation_, .step = next_, .body = std::move(body)};
}

ToServerMessages WorkerMachine::push(std::vector<Body> bodies) {
  MUSTER_CHECK(bodies.size() == holders_.servers, "a push has one body for each share");
  for (std::uint32_t share = 0; share < holders_.servers; ++share)
    unkept_[share].push_back(push_of(std::move(bodies[share])));
  ToServerMessages messages;
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder)
    if (peers_[holder].is_welcome) messages.push_back({holder, unkept_[holders_.share(holder)].back()});
  ++next_;
  return messages;
}

ToServerMessages WorkerMachine::set_common_point(std::uint64_t step) {
  common_point_ = std::max(common_point_, step);
  ToServerMessages messages;
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder)
    if (peers_[holder].is_welcome) messages.push_back({holder, common_point()});
  return messages;
}

ToServerMessages WorkerMachine::leave() const {
  const Leave leave{.worker = config_.worker, .generation = generation_, .step = next_};
  ToServerMessages messages;
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder)
    if (peers_[holder].is_welcome) messages.push_back({holder, leave});
  return messages;
}

ToServerMessages WorkerMachine::receive(std::uint32_t holder, const ToWorker& message) {
  if (const auto* refusal = std::get_if<Refusal>(&message)) {
    if (refusal->generation == generation_) fail_with(Code::refused, refusal->reason);
    return {};
  }
  if (const auto* rows = std::get_if<Rows>(&message)) {
    if (rows->generation == generation_) take(holder, *rows);
    return {};
  }
  const auto& answer = std::get<Taken>(message);
  return answer.generation == generation_ ? taken(holder, answer) : ToServerMessages{};
}

// Early rows that were sent before a later look at them are no base for what has changed since that one: they
// are asked for again.
void WorkerMachine::take(std::uint32_t holder, const Rows& rows) {
  const auto pending = std::ranges::find_if(
      pulls_, [&](const auto& each) { return each.second.serials[holder] == rows.serial; });
  if (pending == pulls_.end() || pending->second.rows[holder]) return;
  std::optional<Rows>& early = pending->second.early[holder];
  if (rows.kind == Rows::Kind::early) {
    if (!early || early->applied < rows.applied) early = rows;
    return;
  }
  if (rows.kind == Rows::Kind::changed && (!early || early->applied < rows.since)) return;
  std::optional<Rows>& place = pending->second.rows[holder];
  place = rows;
  if (rows.kind == Rows::Kind::changed) place->early = early->body;
}

ToServerMessages WorkerMachine::taken(std::uint32_t holder, const Taken& taken) {
  Peer& peer = peers_[holder];
  peer.kept = std::max(peer.kept, std::min(taken.kept, next_));
  const std::uint32_t share = holders_.share(holder);
  const std::uint64_t kept = kept_of(share);
  std::erase_if(unkept_[share], [&](const Push& push) { return push.step < kept; });
  ToServerMessages messages;
  if (!taken.is_welcome) return messages;
  told_origin_ = std::max(told_origin_, taken.origin);
  peer.lacks_origin = !origin_ && taken.origin == 0 && taken.next == 0 && first_held(holder) > 0;
  if (peer.lacks_origin) return messages;
  peer.is_welcome = true;
  send_again(holder, taken.next, messages);
  return messages;
}

std::string WorkerMachine::described(std::uint32_t holder) const {
  if (holders_.copies == 1) return fmt::format("server {}", holders_.server(holder));
  return fmt::format("server {} (and server {}, which has the same rows)", holders_.server(holder),
                     holders_.server(holders_.other(holder)));
}

std::uint64_t WorkerMachine::first_held(std::uint32_t holder) const {
  const Pushes& unkept = unkept_[holders_.share(holder)];
  return unkept.empty() ? next_ : unkept.front().step;
}

bool WorkerMachine::lacks_origin() const { return std::ranges::any_of(peers_, &Peer::lacks_origin); }

ToServerMessages WorkerMachine::assume_origin() {
  origin_ = 0;
  ToServerMessages messages;
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder)
    if (peers_[holder].lacks_origin) messages.push_back(retry(holder)[0]);
  return messages;
}

void WorkerMachine::send_again(std::uint32_t holder, std::uint64_t next, ToServerMessages& messages) {
  const Pushes& unkept = unkept_[holders_.share(holder)];
  if (next < first_held(holder)) return fail_for_lost(holder, next);
  if (common_point_ > 0) messages.push_back({holder, common_point()});
  for (const Push& push : unkept)
    if (push.step >= next) messages.push_back({holder, push});
  for (auto& [place, pending] : pulls_)
    if (!pending.rows[holder]) messages.push_back({holder, pull_message(place, pending, holder)});
}

// All go back to their common point once, before which everything is kept. Where that leads to the same step,
// it is what was kept that is gone.
void WorkerMachine::fail_for_lost(std::uint32_t holder, std::uint64_t next) {
  const std::optional<Lost> before = std::exchange(lost_, Lost{generation_, begin_});
  if (!before || *before != Lost{generation_ - 1, begin_})
    return fail_with(Code::peer_lost,
                     fmt::format("{} has lost the push of step {} of worker {}, and no process "
                                 "has it any more: all go back to their common point",
                                 described(holder), next, config_.worker));
  fail_with(
      Code::not_found,
      fmt::format("{} lacks the pushes of worker {} from step {} on, and the job goes on from step {}: its "
                  "recovery folder (MS_RECOVERY_PATH) was removed, or is an older copy or another server's. "
                  "Bring back the folder that it had, or begin the job anew with MUSTER_FRESH=1",
                  described(holder), config_.worker, next, begin_));
}

ToServerMessages WorkerMachine::retry(std::uint32_t holder) {
  peers_[holder].is_welcome = peers_[holder].lacks_origin = false;
  return {{holder,
           Hello{.worker = config_.worker, .generation = generation_, .begin = begin_, .origin = origin_}}};
}

std::optional<std::vector<Rows>> WorkerMachine::take_rows(std::uint64_t step, std::uint32_t number) {
  const auto pending = pulls_.find({step, number});
  if (pending == pulls_.end()) return std::nullopt;
  const auto& answers = pending->second.rows;
  if (!std::ranges::all_of(answers, [](const auto& each) { return each.has_value(); })) return std::nullopt;
  std::vector<Rows> rows;
  for (std::uint32_t share = 0; share < holders_.servers; ++share) rows.push_back(*answers[share]);
  pulls_.erase(pending);
  return rows;
}

std::uint64_t WorkerMachine::kept_of(std::uint32_t share) const {
  std::uint64_t least = peers_[share].kept;
  for (std::uint32_t holder = share; holder < holders_.count(); holder += holders_.servers)
    least = std::min(least, peers_[holder].kept);
  return least;
}

std::uint64_t WorkerMachine::kept() const {
  std::uint64_t least = next_;
  for (const Peer& peer : peers_) least = std::min(least, peer.kept);
  return least;
}

bool WorkerMachine::is_welcome() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.is_welcome; });
}

bool WorkerMachine::awaits(std::uint32_t holder) const {
  return peers_[holder].kept < next_ || lacks_answer(holder);
}

bool WorkerMachine::lacks_answer(std::uint32_t holder) const {
  return !peers_[holder].is_welcome || std::any_of(pulls_.begin(), pulls_.end(), [&](const auto& each) {
    return (each.first.first <= next_ || !each.second.is_ahead) && !each.second.rows[holder];
  });
}

std::size_t WorkerMachine::held() const {
  std::size_t all = 0;
  for (const Pushes& pushes : unkept_) all += pushes.size();
  return all;
}

void WorkerMachine::fail_with(Code code, std::string message) {
  if (!failure_) failure_ = Error{code, std::move(message)};
}

}  // namespace muster::server
