#include "muster/collective/exchange.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::collective {
namespace {

// A data frame at most: docs/formats/collective.md. While one travels the next one's checksum is made, and
// that of the one before checked.
constexpr std::size_t part_limit_bytes = 128 << 10;

// `take` of each part of a payload; of an empty one, too.
template <class Payload, class Take>
void for_each_part(Payload payload, const Take& take) {
  do {
    const std::size_t now = std::min(payload.size(), part_limit_bytes);
    take(payload.first(now));
    payload = payload.subspan(now);
  } while (!payload.empty());
}

}  // namespace

Exchange::Exchange(std::uint32_t rank, FrameOrigin origin, std::vector<Connected> connections,
                   ReconnectAcceptor* acceptor)
    : rank_(rank), origin_(origin), acceptor_(acceptor) {
  if (acceptor_ != nullptr) look_again_.emplace(acceptor_->clock());
  for (Connected& each : connections) peers_.emplace_back(each.rank, std::move(each.link), *acceptor);
}

void Exchange::announce(const Call& call) {
  const std::lock_guard lock(mutex_);
  call_ = call;
  call_bytes_ = encode(call);
  for (Peer& peer : peers_) {
    queue(peer, FrameType::call, call_bytes_);
    peer.incoming.add_incoming(FrameType::call, peer.call);
  }
}

void Exchange::send(std::size_t index, std::span<const std::byte> payload) {
  const std::lock_guard lock(mutex_);
  for_each_part(payload, [&](const auto part) { queue(peers_[index], FrameType::data, part); });
}

void Exchange::receive(std::size_t index, std::span<std::byte> payload) {
  const std::lock_guard lock(mutex_);
  for_each_part(payload,
                [&](const auto part) { peers_[index].incoming.add_incoming(FrameType::data, part); });
}

void Exchange::queue(Peer& peer, FrameType type, std::span<const std::byte> payload) {
  peer.stream.add(type, payload, {.origin = origin_, .sequence = call_.number});
}

bool Exchange::done() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
    return peer.stream.all_sent() && peer.incoming.done() && peer.stream.is_whole();
  });
}

Result<> Exchange::run(const net::Wait& wait) {
  const std::lock_guard lock(mutex_);
  return run_locked(wait);
}

Result<> Exchange::run_locked(const net::Wait& wait) {
  const TimePoint start = acceptor_->clock().now();
  while (!done()) {
    bool moved = false;
    for (Peer& peer : peers_) {
      MUSTER_TRY(const bool peer_moved, advance(peer));
      moved = moved || peer_moved;
    }
    if (moved)
      look_again_->found();
    else if (!look_again_->once_more())
      MUSTER_TRY_VOID(wait_for_progress(wait, start));
  }
  for (Peer& peer : peers_) {
    peer.stream.finish_step(peer.incoming.frames() > 0);
    peer.incoming.clear();
  }
  return {};
}

// Both sides of a stream know how much its last step left unanswered: who got much says so, who sent it
// waits.
Result<> Exchange::settle(const net::Wait& wait) {
  const std::lock_guard lock(mutex_);
  bool awaits = false;
  for (Peer& peer : peers_) {
    if (peer.stream.unanswered_bytes() > copied_limit_bytes) {
      net::store_little(peer.taken.data(), peer.stream.received_bytes());
      queue(peer, FrameType::taken, peer.taken);
      awaits = true;
    }
    if (peer.stream.kept_bytes() > copied_limit_bytes) {
      peer.incoming.add_incoming(FrameType::taken, peer.heard);
      awaits = true;
    }
  }
  if (awaits) MUSTER_TRY_VOID(run_locked(wait));
  for (Peer& peer : peers_) peer.stream.own_kept(copies_);
  copies_.forget();
  return {};
}

void Exchange::forget() {
  const std::lock_guard lock(mutex_);
  forgotten_ = true;
}

Result<bool, LinkError> Exchange::attend() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return true;
  if (forgotten_) return false;
  acceptor_->serve();
  look_for_resets();
  bool more = false;
  for (Peer& peer : peers_) {
    const auto has_more = peer.stream.attend();
    if (!has_more)
      return tl::unexpected(LinkError{
          .error = {has_more.error().code, fmt::format("{} is gone: its connection closed ({})",
                                                       peer.stream.name(), has_more.error().message)},
          .lost_rank = peer.stream.rank()});
    if (const auto sound = peer.stream.give_up_sending(); !sound)
      return tl::unexpected(LinkError{.error = sound.error()});
    more = more || *has_more;
  }
  return more;
}

void Exchange::watch(WaitList& waits) {
  for (Peer& peer : peers_) peer.stream.watch(waits);
}

// Who ends the group, or dies, resets connections; so does a network.
void Exchange::look_for_resets() {
  std::vector<Peer*> watched;
  waits_.clear();
  for (Peer& peer : peers_) {
    if (!peer.stream.is_whole() || !peer.incoming.done()) continue;
    peer.stream.watch(waits_);
    if (watched.size() < waits_.size()) watched.push_back(&peer);
  }
  if (!waits_.look()) return;
  for (std::size_t i = 0; i < watched.size(); ++i)
    if (waits_.is_ready(i) && watched[i]->stream.is_reset_by_accident())
      watched[i]->stream.break_off({Code::peer_lost, fmt::format("{} closed it", watched[i]->stream.name())});
}

Result<bool> Exchange::advance(Peer& peer) {
  if (!peer.stream.is_whole()) return mend(peer);
  const bool sent = peer.stream.send_some();
  MUSTER_TRY(const bool received, advance_receiving(peer));
  if (peer.incoming.done()) {
    if (const auto sound = peer.stream.give_up_sending(); !sound)
      return fail(sound.error().code, fmt::format("{} during {}", sound.error().message, to_string(call_)));
  }
  return sent || received;
}

Result<bool> Exchange::mend(Peer& peer) {
  auto moved = peer.stream.mend();
  if (moved) return moved;
  return fail(moved.error().code, fmt::format("{} is gone: its connection closed during {} ({})",
                                              peer.stream.name(), to_string(call_), moved.error().message));
}

Result<bool> Exchange::advance_receiving(Peer& peer) {
  FrameList& incoming = peer.incoming;
  if (incoming.done()) return false;
  std::array<iovec, FrameList::piece_limit> pieces;
  MUSTER_TRY(const std::size_t received, peer.stream.receive_some(incoming.rest(pieces)));
  for (std::size_t left = received; left > 0;) {
    std::size_t piece = incoming.piece();
    left -= incoming.take(left);
    for (; piece < incoming.piece(); ++piece) MUSTER_TRY_VOID(check_piece(peer, piece));
  }
  return received > 0 || !peer.stream.is_whole();
}

Result<> Exchange::check_piece(Peer& peer, std::size_t piece) {
  const std::size_t frame = piece / 2;
  auto header = net::decode_header(peer.incoming.header(frame), payload_limit_bytes);
  if (!header)
    return fail(Code::corrupt, fmt::format("{} sent {}", peer.stream.name(), header.error().message));
  if (piece % 2 == 0) return check_header(peer, frame, *header);
  if (auto sound = net::check_payload(*header, peer.incoming.payload(frame)); !sound)
    return fail(Code::corrupt, fmt::format("{}: {}", peer.stream.name(), sound.error().message));
  return check_content(peer, frame);
}

Result<> Exchange::check_content(const Peer& peer, std::size_t frame) const {
  if (peer.incoming.type(frame) == FrameType::call) {
    MUSTER_TRY(const Call peer_call, decode_call(peer.call));
    if (!(peer_call == call_)) return fail(mismatch(rank_, call_, peer.stream.rank(), peer_call));
  }
  if (peer.incoming.type(frame) == FrameType::taken) {
    // Of what went before the frames of this step.
    const auto taken = net::load_little<std::uint64_t>(peer.heard.data());
    if (taken != peer.stream.step_begin())
      return fail(Code::corrupt,
                  fmt::format("{} says at the end of {} that it has taken {} bytes of {}", peer.stream.name(),
                              to_string(call_), taken, peer.stream.step_begin()));
  }
  return {};
}

Result<> Exchange::check_header(const Peer& peer, std::size_t frame, const net::FrameHeader& header) const {
  if (auto sound = check_origin(header, origin_); !sound)
    return fail(sound.error().code,
                fmt::format("a frame of {}: {}", peer.stream.name(), sound.error().message));
  const auto due = static_cast<std::uint16_t>(peer.incoming.type(frame));
  const bool is_call = peer.incoming.type(frame) == FrameType::call;
  const bool in_sequence = is_call || header.sequence == call_.number;  // a call is compared as a whole
  if (header.type == due && in_sequence && header.payload_size_bytes == peer.incoming.payload(frame).size())
    return {};
  return fail(
      Code::corrupt,
      fmt::format("{} sent a frame of type {:#06x} for call #{} with {} bytes during {}; due were type "
                  "{:#06x} and {} bytes",
                  peer.stream.name(), header.type, header.sequence, header.payload_size_bytes,
                  to_string(call_), due, peer.incoming.payload(frame).size()));
}

Result<net::Readiness> Exchange::wait_for_all(const net::Wait& wait) {
  waits_.clear();
  TimePoint soonest = acceptor_->deadline();
  for (Peer& peer : peers_) {
    peer.waits_at = waits_.size();
    peer.stream.add_to(waits_, {.reading = !peer.incoming.done(), .writing = !peer.stream.all_sent()});
    soonest = std::min(soonest, peer.stream.next_step());
  }
  const std::size_t of_acceptor = waits_.size();
  waits_.add(acceptor_->fd(), {.reading = true});
  MUSTER_TRY(const net::Readiness readiness,
             waits_.wait({.deadline = std::min(wait.deadline, soonest), .stop = wait.stop}));
  const bool is_called = waits_.is_ready(of_acceptor);
  if (readiness != net::Readiness::stopped &&
      (is_called || acceptor_->clock().now() >= acceptor_->deadline()))
    acceptor_->serve();
  return readiness;
}

Result<> Exchange::wait_for_progress(const net::Wait& wait, TimePoint start) {
  MUSTER_TRY(const net::Readiness readiness, wait_for_all(wait));
  if (readiness == net::Readiness::stopped)
    return fail(Code::aborted, fmt::format("{} was stopped", to_string(call_)));
  if (readiness == net::Readiness::ready || acceptor_->clock().now() < wait.deadline) {
    break_off_reset();
    for (Peer& peer : peers_) MUSTER_TRY_VOID(peer.stream.look_at_news());
    if (acceptor_->has_news()) acceptor_->bell().ring();  // for the sake of messages
    return {};
  }
  const std::chrono::duration<double> waited = acceptor_->clock().now() - start;
  return fail(Code::timeout,
              fmt::format("{} waited {:.3g} s for {}", to_string(call_), waited.count(), missing_ranks()));
}

// A peer that owes nothing is heard only when its connection is reset.
void Exchange::break_off_reset() {
  for (Peer& peer : peers_)
    if (peer.stream.is_whole() && peer.incoming.done() && waits_.has_ended(peer.waits_at))
      peer.stream.break_off({Code::peer_lost, fmt::format("{} closed it", peer.stream.name())});
}

std::string Exchange::missing_ranks() const {
  std::vector<std::string> names;
  for (const Peer& peer : peers_)
    if (!peer.incoming.done() || !peer.stream.all_sent() || !peer.stream.is_whole())
      names.push_back(peer.stream.name());
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<> Exchange::check_peers() {
  for (Peer& peer : peers_) MUSTER_TRY_VOID(peer.stream.check_peer());
  return {};
}

void Exchange::reset() {
  for (Peer& peer : peers_) peer.stream.reset();
}

void Exchange::close() {
  for (Peer& peer : peers_) peer.stream.close();
}

}  // namespace muster::collective
