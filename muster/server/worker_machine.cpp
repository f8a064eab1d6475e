#include "muster/server/worker_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::server {

WorkerMachine::WorkerMachine(WorkerConfig config) : config_(config), peers_(config.server_num) {}

ToServerMessages WorkerMachine::begin(std::uint64_t generation, std::uint64_t step) {
  MUSTER_CHECK(generation > generation_, "a generation of parameter servers begins twice");
  generation_ = generation;
  begin_ = next_ = step;
  pulls_.clear();
  failure_.reset();
  ToServerMessages messages;
  for (std::uint32_t server = 0; server < config_.server_num; ++server) {
    Peer& peer = peers_[server];
    std::erase_if(peer.unkept, [&](const Push& push) { return push.step >= step; });
    for (Push& push : peer.unkept) push.generation = generation;
    peer.kept = std::min(peer.kept, step);
    const auto hello = retry(server);
    messages.insert(messages.end(), hello.begin(), hello.end());
  }
  return messages;
}

ToServerMessages WorkerMachine::ask(const PullPlace& place, std::vector<Body> bodies, bool is_ahead) {
  MUSTER_CHECK(bodies.size() == config_.server_num, "a pull has one body for each server");
  PendingPull& pending = pulls_[place];
  pending = {.is_ahead = is_ahead,
             .bodies = std::move(bodies),
             .serials = std::vector<std::uint32_t>(config_.server_num),
             .early = std::vector<std::optional<Rows>>(config_.server_num),
             .rows = std::vector<std::optional<Rows>>(config_.server_num)};
  ToServerMessages messages;
  for (std::uint32_t server = 0; server < config_.server_num; ++server)
    if (peers_[server].is_welcome) messages.push_back({server, pull_message(place, pending, server)});
  return messages;
}

Pull WorkerMachine::pull_message(const PullPlace& place, PendingPull& pending, std::uint32_t server) {
  pending.serials[server] = ++serial_;
  pending.early[server].reset();
  return {.worker = config_.worker,
          .generation = generation_,
          .step = place.first,
          .serial = serial_,
          .is_ahead = pending.is_ahead,
          .body = pending.bodies[server]};
}

Push WorkerMachine::push_of(Body body) const {
  return {.worker = config_.worker, .generation = generation_, .step = next_, .body = std::move(body)};
}

ToServerMessages WorkerMachine::push(std::vector<Body> bodies) {
  MUSTER_CHECK(bodies.size() == config_.server_num, "a push has one body for each server");
  ToServerMessages messages;
  for (std::uint32_t server = 0; server < config_.server_num; ++server) {
    Peer& peer = peers_[server];
    peer.unkept.push_back(push_of(std::move(bodies[server])));
    if (peer.is_welcome) messages.push_back({server, peer.unkept.back()});
  }
  ++next_;
  return messages;
}

ToServerMessages WorkerMachine::set_common_point(std::uint64_t step) {
  common_point_ = std::max(common_point_, step);
  ToServerMessages messages;
  for (std::uint32_t server = 0; server < config_.server_num; ++server)
    if (peers_[server].is_welcome) messages.push_back({server, common_point()});
  return messages;
}

ToServerMessages WorkerMachine::receive(std::uint32_t server, const ToWorker& message) {
  if (const auto* refusal = std::get_if<Refusal>(&message)) {
    if (refusal->generation == generation_) fail_with(Code::refused, refusal->reason);
    return {};
  }
  if (const auto* rows = std::get_if<Rows>(&message)) {
    if (rows->generation == generation_) take(server, *rows);
    return {};
  }
  const auto& answer = std::get<Taken>(message);
  return answer.generation == generation_ ? taken(server, answer) : ToServerMessages{};
}

// Early rows that were sent before a later look at them are no base for what has changed since that one: they
// are asked for again.
void WorkerMachine::take(std::uint32_t server, const Rows& rows) {
  const auto pending = std::ranges::find_if(
      pulls_, [&](const auto& each) { return each.second.serials[server] == rows.serial; });
  if (pending == pulls_.end() || pending->second.rows[server]) return;
  std::optional<Rows>& early = pending->second.early[server];
  if (rows.kind == Rows::Kind::early) {
    if (!early || early->applied < rows.applied) early = rows;
    return;
  }
  if (rows.kind == Rows::Kind::changed && (!early || early->applied < rows.since)) return;
  std::optional<Rows>& place = pending->second.rows[server];
  place = rows;
  if (rows.kind == Rows::Kind::changed) place->early = early->body;
}

ToServerMessages WorkerMachine::taken(std::uint32_t server, const Taken& taken) {
  Peer& peer = peers_[server];
  peer.kept = std::max(peer.kept, std::min(taken.kept, next_));
  std::erase_if(peer.unkept, [&](const Push& push) { return push.step < taken.kept; });
  ToServerMessages messages;
  if (!taken.is_welcome) return messages;
  peer.is_welcome = true;
  send_again(server, taken.next, messages);
  return messages;
}

void WorkerMachine::send_again(std::uint32_t server, std::uint64_t next, ToServerMessages& messages) {
  const Peer& peer = peers_[server];
  const std::uint64_t first_held = peer.unkept.empty() ? next_ : peer.unkept.front().step;
  if (next < first_held)
    return fail_with(Code::peer_lost,
                     fmt::format("server {} has lost the push of step {} of worker {}, and no process has "
                                 "it any more: all go back to their common point",
                                 server, next, config_.worker));
  if (common_point_ > 0) messages.push_back({server, common_point()});
  for (const Push& push : peer.unkept)
    if (push.step >= next) messages.push_back({server, push});
  for (auto& [place, pending] : pulls_)
    if (!pending.rows[server]) messages.push_back({server, pull_message(place, pending, server)});
}

ToServerMessages WorkerMachine::retry(std::uint32_t server) {
  peers_[server].is_welcome = false;
  return {{server, Hello{.worker = config_.worker, .generation = generation_, .begin = begin_}}};
}

std::optional<std::vector<Rows>> WorkerMachine::take_rows(std::uint64_t step, std::uint32_t number) {
  const auto pending = pulls_.find({step, number});
  if (pending == pulls_.end()) return std::nullopt;
  std::vector<Rows> rows;
  for (auto& place : pending->second.rows) {
    if (!place) return std::nullopt;
    rows.push_back(*place);
  }
  pulls_.erase(pending);
  return rows;
}

std::uint64_t WorkerMachine::kept() const {
  std::uint64_t least = next_;
  for (const Peer& peer : peers_) least = std::min(least, peer.kept);
  return least;
}

bool WorkerMachine::is_welcome() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.is_welcome; });
}

bool WorkerMachine::awaits(std::uint32_t server) const {
  return peers_[server].kept < next_ || lacks_answer(server);
}

bool WorkerMachine::lacks_answer(std::uint32_t server) const {
  return !peers_[server].is_welcome || std::any_of(pulls_.begin(), pulls_.end(), [&](const auto& each) {
    return each.first.first <= next_ && !each.second.rows[server];
  });
}

std::size_t WorkerMachine::held() const {
  std::size_t all = 0;
  for (const Peer& peer : peers_) all += peer.unkept.size();
  return all;
}

void WorkerMachine::fail_with(Code code, std::string message) {
  if (!failure_) failure_ = Error{code, std::move(message)};
}

}  // namespace muster::server
