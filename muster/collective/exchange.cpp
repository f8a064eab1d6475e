#include "muster/collective/exchange.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::collective {

Exchange::Exchange(std::uint32_t rank, FrameOrigin origin, std::vector<Link> links)
    : rank_(rank), origin_(origin), links_(std::move(links)), polled_(links_.size() + 1) {}

void Exchange::announce(const Call& call) {
  call_ = call;
  call_bytes_ = encode(call);
  for (Link& link : links_) {
    queue(link, FrameType::call, call_bytes_);
    link.incoming_.add_incoming(FrameType::call, link.peer_call_);
  }
}

void Exchange::send(std::size_t index, std::span<const std::byte> payload) {
  if (!payload.empty()) queue(links_[index], FrameType::data, payload);
}

void Exchange::receive(std::size_t index, std::span<std::byte> payload) {
  if (!payload.empty()) links_[index].incoming_.add_incoming(FrameType::data, payload);
}

void Exchange::queue(Link& link, FrameType type, std::span<const std::byte> payload) {
  link.outgoing_.add_outgoing(type, payload, {.origin = origin_, .sequence = call_.number});
}

bool Exchange::done() const {
  return std::all_of(links_.begin(), links_.end(),
                     [](const Link& link) { return link.outgoing_.done() && link.incoming_.done(); });
}

Result<> Exchange::run(const net::Wait& wait) {
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
    link.outgoing_.clear();
    link.incoming_.clear();
  }
  return {};
}

Result<bool> Exchange::advance(Link& link) {
  MUSTER_TRY(const bool sent, advance_sending(link));
  MUSTER_TRY(const bool received, advance_receiving(link));
  return sent || received;
}

// A peer that ended the group may have said why before it stopped reading: what it sent is read first, and
// only a connection with nothing left to read reports that sending failed.
Result<bool> Exchange::advance_sending(Link& link) {
  if (link.outgoing_.done()) return false;
  if (link.send_failure_) {
    if (link.incoming_.done()) return fail(*link.send_failure_);
    return false;
  }
  std::array<iovec, FrameList::piece_limit> pieces;
  auto sent = link.socket_.send_some(link.outgoing_.rest(pieces));
  if (!sent) {
    link.send_failure_ = Error{sent.error().code, fmt::format("{} is gone: its connection closed during {}",
                                                              link.name(), to_string(call_))};
    return true;
  }
  for (std::size_t left = *sent; left > 0;) left -= link.outgoing_.take(left);
  return *sent > 0;
}

Result<bool> Exchange::advance_receiving(Link& link) {
  FrameList& incoming = link.incoming_;
  if (incoming.done()) return false;
  std::array<iovec, FrameList::piece_limit> pieces;
  auto received = link.socket_.receive_some(incoming.rest(pieces));
  if (!received) {
    const bool closed = received.error().code == Code::peer_lost;
    return fail(received.error().code, closed ? fmt::format("{} is gone: its connection closed during {}",
                                                            link.name(), to_string(call_))
                                              : received.error().message);
  }
  for (std::size_t left = *received; left > 0;) {
    const std::size_t piece = incoming.piece();
    left -= incoming.take(left);
    if (incoming.piece() == piece) continue;
    if (auto sound = check_piece(link, piece); !sound)
      return fail(sound.error().code, std::move(sound).error().message);
  }
  return *received > 0;
}

Result<> Exchange::check_piece(Link& link, std::size_t piece) {
  const std::size_t frame = piece / 2;
  auto header = net::decode_header(link.incoming_.header(frame), payload_limit_bytes);
  if (!header) return fail(Code::corrupt, fmt::format("{} sent {}", link.name(), header.error().message));
  if (piece % 2 == 0) return check_header(link, frame, *header);
  if (auto sound = net::check_payload(*header, link.incoming_.payload(frame)); !sound)
    return fail(Code::corrupt, fmt::format("{}: {}", link.name(), sound.error().message));
  if (link.incoming_.type(frame) != FrameType::call) return {};
  MUSTER_TRY(const Call peer_call, decode_call(link.peer_call_));
  if (!(peer_call == call_)) return fail(mismatch(rank_, call_, link.rank(), peer_call));
  return {};
}

Result<> Exchange::check_header(const Link& link, std::size_t frame, const net::FrameHeader& header) const {
  if (auto sound = check_origin(header, origin_); !sound)
    return fail(sound.error().code, fmt::format("a frame of {}: {}", link.name(), sound.error().message));
  const auto due = static_cast<std::uint16_t>(link.incoming_.type(frame));
  const bool is_call = link.incoming_.type(frame) == FrameType::call;
  const bool in_sequence = is_call || header.sequence == call_.number;  // a call is compared as a whole
  if (header.type == due && in_sequence && header.payload_size_bytes == link.incoming_.payload(frame).size())
    return {};
  return fail(
      Code::corrupt,
      fmt::format("{} sent a frame of type {:#06x} for call #{} with {} bytes during {}; due were type "
                  "{:#06x} and {} bytes",
                  link.name(), header.type, header.sequence, header.payload_size_bytes, to_string(call_), due,
                  link.incoming_.payload(frame).size()));
}

Result<> Exchange::wait_for_progress(const net::Wait& wait, TimePoint start) {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const Link& link = links_[i];
    const bool sending = !link.outgoing_.done() && !link.send_failure_;
    const int events = (link.incoming_.done() ? 0 : POLLIN) | (sending ? POLLOUT : 0);
    polled_[i] = {.fd = link.socket_.fd(), .events = static_cast<short>(events), .revents = 0};
  }
  MUSTER_TRY(const net::Readiness readiness, net::poll_until(polled_, wait));
  if (readiness == net::Readiness::ready) return check_resets();
  if (readiness == net::Readiness::stopped)
    return fail(Code::aborted, fmt::format("{} was stopped", to_string(call_)));
  const std::chrono::duration<double> waited = real_clock().now() - start;
  return fail(Code::timeout,
              fmt::format("{} waited {:.3g} s for {}", to_string(call_), waited.count(), missing_ranks()));
}

// A peer that owes nothing is heard only when it resets its connection.
Result<> Exchange::check_resets() const {
  for (std::size_t i = 0; i < links_.size(); ++i)
    if (links_[i].incoming_.done() && (polled_[i].revents & (POLLERR | POLLHUP)) != 0)
      return fail(Code::peer_lost,
                  fmt::format("{} ended the group during {}", links_[i].name(), to_string(call_)));
  return {};
}

std::string Exchange::missing_ranks() const {
  std::vector<std::string> names;
  for (const Link& link : links_)
    if (!link.incoming_.done() || !link.outgoing_.done()) names.push_back(link.name());
  return fmt::format("{}", fmt::join(names, ", "));
}

void Exchange::reset() {
  for (Link& link : links_) link.socket_.reset();
}

}  // namespace muster::collective
