#include "muster/collective/exchange.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::collective {

Exchange::Exchange(std::uint32_t rank, FrameOrigin origin, std::vector<Connected> connections,
                   ReconnectAcceptor* acceptor)
    : rank_(rank), origin_(origin), acceptor_(acceptor) {
  for (Connected& each : connections) links_.emplace_back(each.rank, std::move(each.socket), *acceptor);
}

void Exchange::announce(const Call& call) {
  const std::lock_guard lock(mutex_);
  call_ = call;
  call_bytes_ = encode(call);
  for (Link& link : links_) {
    queue(link, FrameType::call, call_bytes_);
    link.incoming.add_incoming(FrameType::call, link.peer_call);
  }
}

void Exchange::send(std::size_t index, std::span<const std::byte> payload) {
  const std::lock_guard lock(mutex_);
  queue(links_[index], FrameType::data, payload);
}

void Exchange::receive(std::size_t index, std::span<std::byte> payload) {
  const std::lock_guard lock(mutex_);
  links_[index].incoming.add_incoming(FrameType::data, payload);
}

void Exchange::queue(Link& link, FrameType type, std::span<const std::byte> payload) {
  link.wire.add(type, payload, {.origin = origin_, .sequence = call_.number});
}

bool Exchange::done() const {
  return std::all_of(links_.begin(), links_.end(), [](const Link& link) {
    return link.wire.all_sent() && link.incoming.done() && link.wire.is_whole();
  });
}

Result<> Exchange::run(const net::Wait& wait) {
  const std::lock_guard lock(mutex_);
  return run_locked(wait);
}

Result<> Exchange::run_locked(const net::Wait& wait) {
  const TimePoint start = real_clock().now();
  while (!done()) {
    bool moved = false;
    for (Link& link : links_) {
      MUSTER_TRY(const bool link_moved, advance(link));
      moved = moved || link_moved;
    }
    if (!moved) MUSTER_TRY_VOID(wait_for_progress(wait, start));
  }
  for (Link& link : links_) {
    link.wire.finish_step(link.incoming.frames() > 0);
    link.incoming.clear();
  }
  return {};
}

// Both sides of a link know how much its last step left unanswered: who got much says so, who sent it waits.
Result<> Exchange::settle(const net::Wait& wait) {
  const std::lock_guard lock(mutex_);
  bool awaits = false;
  for (Link& link : links_) {
    if (link.wire.unanswered_bytes() > copied_limit_bytes) {
      net::store_little(link.taken.data(), link.wire.received_bytes());
      queue(link, FrameType::taken, link.taken);
      awaits = true;
    }
    if (link.wire.kept_bytes() > copied_limit_bytes) {
      link.incoming.add_incoming(FrameType::taken, link.peer_taken);
      awaits = true;
    }
  }
  if (awaits) MUSTER_TRY_VOID(run_locked(wait));
  for (Link& link : links_) link.wire.own_kept(copies_);
  copies_.forget();
  return {};
}

void Exchange::forget() {
  const std::lock_guard lock(mutex_);
  forgotten_ = true;
}

Result<bool> Exchange::attend() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return true;
  if (forgotten_) return false;
  acceptor_->serve();
  look_for_resets();
  bool more = false;
  for (Link& link : links_) {
    const auto has_more = link.wire.attend();
    if (!has_more)
      return fail(has_more.error().code, fmt::format("{} is gone: its connection closed ({})",
                                                     link.wire.name(), has_more.error().message));
    MUSTER_TRY_VOID(link.wire.give_up_sending());
    more = more || *has_more;
  }
  return more;
}

void Exchange::watch(std::vector<pollfd>& polled) {
  for (Link& link : links_) link.wire.watch(polled);
}

// Who ends the group, or dies, resets connections; so does a network.
void Exchange::look_for_resets() {
  std::vector<Link*> watched;
  polled_.clear();
  for (Link& link : links_) {
    if (!link.wire.is_whole() || !link.incoming.done()) continue;
    link.wire.watch(polled_);
    if (watched.size() < polled_.size()) watched.push_back(&link);
  }
  if (::poll(polled_.data(), polled_.size(), 0) <= 0) return;
  for (std::size_t i = 0; i < watched.size(); ++i)
    if (polled_[i].revents != 0 && watched[i]->wire.is_reset_by_accident())
      watched[i]->wire.break_off({Code::peer_lost, fmt::format("{} closed it", watched[i]->wire.name())});
}

Result<bool> Exchange::advance(Link& link) {
  if (!link.wire.is_whole()) return mend(link);
  const bool sent = link.wire.send_some();
  MUSTER_TRY(const bool received, advance_receiving(link));
  if (link.incoming.done()) {
    if (const auto sound = link.wire.give_up_sending(); !sound)
      return fail(sound.error().code, fmt::format("{} during {}", sound.error().message, to_string(call_)));
  }
  return sent || received;
}

Result<bool> Exchange::mend(Link& link) {
  auto moved = link.wire.mend();
  if (moved) return moved;
  return fail(moved.error().code, fmt::format("{} is gone: its connection closed during {} ({})",
                                              link.wire.name(), to_string(call_), moved.error().message));
}

Result<bool> Exchange::advance_receiving(Link& link) {
  FrameList& incoming = link.incoming;
  if (incoming.done()) return false;
  std::array<iovec, FrameList::piece_limit> pieces;
  MUSTER_TRY(const std::size_t received, link.wire.receive_some(incoming.rest(pieces)));
  for (std::size_t left = received; left > 0;) {
    std::size_t piece = incoming.piece();
    left -= incoming.take(left);
    for (; piece < incoming.piece(); ++piece) MUSTER_TRY_VOID(check_piece(link, piece));
  }
  return received > 0 || !link.wire.is_whole();
}

Result<> Exchange::check_piece(Link& link, std::size_t piece) {
  const std::size_t frame = piece / 2;
  auto header = net::decode_header(link.incoming.header(frame), payload_limit_bytes);
  if (!header)
    return fail(Code::corrupt, fmt::format("{} sent {}", link.wire.name(), header.error().message));
  if (piece % 2 == 0) return check_header(link, frame, *header);
  if (auto sound = net::check_payload(*header, link.incoming.payload(frame)); !sound)
    return fail(Code::corrupt, fmt::format("{}: {}", link.wire.name(), sound.error().message));
  return check_content(link, frame);
}

Result<> Exchange::check_content(const Link& link, std::size_t frame) const {
  if (link.incoming.type(frame) == FrameType::call) {
    MUSTER_TRY(const Call peer_call, decode_call(link.peer_call));
    if (!(peer_call == call_)) return fail(mismatch(rank_, call_, link.wire.rank(), peer_call));
  }
  if (link.incoming.type(frame) == FrameType::taken) {
    // Of what went before the frames of this step.
    const auto taken = net::load_little<std::uint64_t>(link.peer_taken.data());
    if (taken != link.wire.step_begin())
      return fail(Code::corrupt,
                  fmt::format("{} says at the end of {} that it has taken {} bytes of {}", link.wire.name(),
                              to_string(call_), taken, link.wire.step_begin()));
  }
  return {};
}

Result<> Exchange::check_header(const Link& link, std::size_t frame, const net::FrameHeader& header) const {
  if (auto sound = check_origin(header, origin_); !sound)
    return fail(sound.error().code,
                fmt::format("a frame of {}: {}", link.wire.name(), sound.error().message));
  const auto due = static_cast<std::uint16_t>(link.incoming.type(frame));
  const bool is_call = link.incoming.type(frame) == FrameType::call;
  const bool in_sequence = is_call || header.sequence == call_.number;  // a call is compared as a whole
  if (header.type == due && in_sequence && header.payload_size_bytes == link.incoming.payload(frame).size())
    return {};
  return fail(
      Code::corrupt,
      fmt::format("{} sent a frame of type {:#06x} for call #{} with {} bytes during {}; due were type "
                  "{:#06x} and {} bytes",
                  link.wire.name(), header.type, header.sequence, header.payload_size_bytes, to_string(call_),
                  due, link.incoming.payload(frame).size()));
}

Result<net::Readiness> Exchange::poll_all(const net::Wait& wait) {
  polled_.clear();
  TimePoint soonest = acceptor_->deadline();
  for (Link& link : links_) {
    const int events = (link.incoming.done() ? 0 : POLLIN) | (link.wire.all_sent() ? 0 : POLLOUT);
    link.polled_at = polled_.size();
    link.wire.add_to(polled_, static_cast<short>(events));
    soonest = std::min(soonest, link.wire.next_step());
  }
  const std::size_t of_acceptor = polled_.size();
  polled_.push_back({.fd = acceptor_->fd(), .events = POLLIN, .revents = 0});
  polled_.emplace_back();
  MUSTER_TRY(const net::Readiness readiness,
             net::poll_until(polled_, {.deadline = std::min(wait.deadline, soonest), .stop = wait.stop}));
  const bool is_called = polled_[of_acceptor].revents != 0;
  if (readiness != net::Readiness::stopped && (is_called || real_clock().now() >= acceptor_->deadline()))
    acceptor_->serve();
  return readiness;
}

Result<> Exchange::wait_for_progress(const net::Wait& wait, TimePoint start) {
  MUSTER_TRY(const net::Readiness readiness, poll_all(wait));
  if (readiness == net::Readiness::stopped)
    return fail(Code::aborted, fmt::format("{} was stopped", to_string(call_)));
  if (readiness == net::Readiness::ready || real_clock().now() < wait.deadline) {
    break_off_reset();
    for (Link& link : links_) MUSTER_TRY_VOID(link.wire.look_at_news());
    if (acceptor_->has_news()) acceptor_->bell().ring();  // for the sake of messages
    return {};
  }
  const std::chrono::duration<double> waited = real_clock().now() - start;
  return fail(Code::timeout,
              fmt::format("{} waited {:.3g} s for {}", to_string(call_), waited.count(), missing_ranks()));
}

// A peer that owes nothing is heard only when its connection is reset.
void Exchange::break_off_reset() {
  for (Link& link : links_)
    if (link.wire.is_whole() && link.incoming.done() &&
        (polled_[link.polled_at].revents & (POLLERR | POLLHUP)) != 0)
      link.wire.break_off({Code::peer_lost, fmt::format("{} closed it", link.wire.name())});
}

std::string Exchange::missing_ranks() const {
  std::vector<std::string> names;
  for (const Link& link : links_)
    if (!link.incoming.done() || !link.wire.all_sent() || !link.wire.is_whole())
      names.push_back(link.wire.name());
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<> Exchange::check_peers() {
  for (Link& link : links_) MUSTER_TRY_VOID(link.wire.check_peer());
  return {};
}

void Exchange::reset() {
  for (Link& link : links_) link.wire.reset();
}

void Exchange::close() {
  for (Link& link : links_) link.wire.close();
}

}  // namespace muster::collective
