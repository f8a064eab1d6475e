#include "muster/collective/remote_pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/collective/waiting.h"

namespace muster::collective {
namespace {

// A data frame at most: its checksum is known before it goes, and the next one is made while it travels.
constexpr std::size_t part_limit_bytes = 1 << 20;

// The payload of a mismatch frame: as long as that of a message, which is due in its place.
MessageBytes encode_mismatch(const Message& sent, const Message& expected) {
  MessageBytes bytes{};
  net::store_little(&bytes[0], sent.size_bytes);
  net::store_little(&bytes[8], expected.size_bytes);
  net::store_little(&bytes[16], sent.pieces);
  net::store_little(&bytes[20], expected.pieces);
  net::store_little(&bytes[24], sent.number);
  return bytes;
}

// What the peer of `link` expected of us.
Error decode_mismatch(const MessageBytes& bytes, Ordered pair) {
  const auto number = net::load_little<std::uint64_t>(&bytes[24]);
  const Message sent{.number = number,
                     .size_bytes = net::load_little<std::uint64_t>(&bytes[0]),
                     .pieces = net::load_little<std::uint32_t>(&bytes[16]),
                     .from = pair.from,
                     .to = pair.to};
  const Message expected{.number = number,
                         .size_bytes = net::load_little<std::uint64_t>(&bytes[8]),
                         .pieces = net::load_little<std::uint32_t>(&bytes[20]),
                         .from = pair.from,
                         .to = pair.to};
  return mismatch(sent, expected);
}

}  // namespace

RemotePairs::RemotePairs(FrameOrigin origin, std::vector<MessageLink> links)
    : origin_(origin), links_(std::move(links)) {}

MessageLink& RemotePairs::link_to(std::uint32_t rank) {
  const auto found = std::ranges::find(links_, rank, &MessageLink::rank);
  MUSTER_CHECK(found != links_.end(), "no connection to this rank");
  return *found;
}

Result<> RemotePairs::send(SentPieces pieces, Message message, const MessageWait& wait) {
  const std::lock_guard lock(writing_);
  MessageLink& link = link_to(message.to);
  message.number = ++link.sent;
  const FrameSource source{.origin = origin_, .sequence = message.number};
  outgoing_.head = encode(message);
  outgoing_.frames.clear();
  outgoing_.frames.add_outgoing(FrameType::message, outgoing_.head, source);
  for (auto rest : pieces)
    while (!rest.empty()) {
      if (outgoing_.frames.full()) MUSTER_TRY_VOID(send_all(link, message, wait));
      const std::size_t now = std::min(rest.size(), part_limit_bytes);
      outgoing_.frames.add_outgoing(FrameType::data, rest.first(now), source);
      rest = rest.subspan(now);
    }
  return send_all(link, message, wait);
}

Result<> RemotePairs::receive(ReceivedPieces pieces, Message message, const MessageWait& wait) {
  MessageLink& link = link_to(message.from);
  message.number = ++link.received;
  incoming_.frames.clear();
  incoming_.frames.add_incoming(FrameType::message, incoming_.head);
  for (auto rest : pieces)
    while (!rest.empty()) {
      if (incoming_.frames.full()) MUSTER_TRY_VOID(receive_all(link, message, wait));
      const std::size_t now = std::min(rest.size(), part_limit_bytes);
      incoming_.frames.add_incoming(FrameType::data, rest.first(now));
      rest = rest.subspan(now);
    }
  return receive_all(link, message, wait);
}

Result<> RemotePairs::send_all(MessageLink& link, const Message& message, const MessageWait& wait) {
  FrameList& frames = outgoing_.frames;
  std::array<iovec, FrameList::piece_limit> storage;
  while (!frames.done()) {
    const auto sent = link.socket.send_some(frames.rest(storage));
    if (!sent) return fail(gone_while_sending(link, message));
    for (std::size_t left = *sent; left > 0;) left -= frames.take(left);
    if (*sent == 0) MUSTER_TRY_VOID(await(link, POLLOUT, message, wait));
  }
  frames.clear();
  return {};
}

Result<> RemotePairs::receive_all(MessageLink& link, const Message& message, const MessageWait& wait) {
  FrameList& frames = incoming_.frames;
  std::array<iovec, FrameList::piece_limit> storage;
  while (!frames.done()) {
    const auto received = link.socket.receive_some(frames.rest(storage));
    if (!received) {
      if (received.error().code == Code::peer_lost) return fail(gone(link, message));
      return fail(received.error());
    }
    for (std::size_t left = *received; left > 0;) {
      const std::size_t piece = frames.piece();
      left -= frames.take(left);
      if (frames.piece() != piece) MUSTER_TRY_VOID(check_piece(link, piece, message));
    }
    if (*received == 0) MUSTER_TRY_VOID(await(link, POLLIN, message, wait));
  }
  frames.clear();
  return {};
}

Result<> RemotePairs::check_piece(MessageLink& link, std::size_t piece, const Message& message) {
  const FrameList& frames = incoming_.frames;
  const std::size_t frame = piece / 2;
  const auto header = net::decode_header(frames.header(frame), payload_limit_bytes);
  if (!header) return fail(Code::corrupt, fmt::format("{} sent {}", link.name, header.error().message));
  const bool is_head = frames.type(frame) == FrameType::message;
  const bool is_mismatch = is_head && header->type == static_cast<std::uint16_t>(FrameType::mismatch);
  if (piece % 2 != 0) {
    if (auto sound = net::check_payload(*header, frames.payload(frame)); !sound)
      return fail(Code::corrupt, fmt::format("{}: {}", link.name, sound.error().message));
    if (is_mismatch) return fail(decode_mismatch(incoming_.head, {.from = message.to, .to = message.from}));
    return is_head ? compare(link, message) : Result<>{};
  }
  if (auto sound = check_origin(*header, origin_); !sound)
    return fail(sound.error().code, fmt::format("a frame of {}: {}", link.name, sound.error().message));
  const auto due = static_cast<std::uint16_t>(frames.type(frame));
  const bool is_due = header->type == due && header->sequence == message.number;
  if ((is_due || is_mismatch) && header->payload_size_bytes == frames.payload(frame).size()) return {};
  return fail(Code::corrupt,
              fmt::format("{} sent a frame of type {:#06x} for message #{} with {} bytes during {}; due were "
                          "type {:#06x} and {} bytes",
                          link.name, header->type, header->sequence, header->payload_size_bytes,
                          to_string(message), due, frames.payload(frame).size()));
}

Result<> RemotePairs::compare(MessageLink& link, const Message& message) {
  MUSTER_TRY(const Message sent, decode_message(incoming_.head, message));
  if (sent == message) return {};
  // Best effort: the connection ends either way. A frame that is being sent must stay whole.
  const std::unique_lock lock(writing_, std::try_to_lock);
  if (!lock) return fail(mismatch(sent, message));
  const auto frame = net::encode_frame({.type = static_cast<std::uint16_t>(FrameType::mismatch),
                                        .epoch = origin_.epoch,
                                        .job_id = origin_.job_id,
                                        .sequence = message.number},
                                       encode_mismatch(sent, message));
  const iovec piece{.iov_base = const_cast<std::byte*>(frame.data()), .iov_len = frame.size()};
  static_cast<void>(link.socket.send_some({&piece, 1}));
  return fail(mismatch(sent, message));
}

Error RemotePairs::gone(const MessageLink& link, const Message& message) const {
  return {Code::peer_lost,
          fmt::format("{} is gone: its connection closed during {}", link.name, to_string(message))};
}

// The peer may have said before it closed that it expected another message.
Error RemotePairs::gone_while_sending(MessageLink& link, const Message& message) {
  std::array<std::byte, net::frame_header_size_bytes + std::tuple_size_v<MessageBytes>> last;
  const iovec piece{.iov_base = last.data(), .iov_len = last.size()};
  const auto received = link.socket.receive_some({&piece, 1});
  if (!received || *received != last.size()) return gone(link, message);
  const auto header =
      net::decode_header(std::span(last).first<net::frame_header_size_bytes>(), payload_limit_bytes);
  MessageBytes payload;
  std::ranges::copy(std::span(last).subspan(net::frame_header_size_bytes), payload.begin());
  const bool is_mismatch = header && header->type == static_cast<std::uint16_t>(FrameType::mismatch) &&
                           check_origin(*header, origin_) && net::check_payload(*header, payload);
  if (!is_mismatch) return gone(link, message);
  return decode_mismatch(payload, {.from = message.from, .to = message.to});
}

// ---- Waiting ----

std::vector<pollfd> RemotePairs::all_polled() const {
  std::vector<pollfd> polled(links_.size() + 1);
  for (std::size_t i = 0; i < links_.size(); ++i)
    polled[i] = {.fd = links_[i].socket.fd(), .events = 0, .revents = 0};
  return polled;
}

Result<> RemotePairs::await(MessageLink& link, short events, const Message& message,
                            const MessageWait& wait) {
  const auto awaited = static_cast<std::size_t>(&link - links_.data());
  std::vector<pollfd> polled = all_polled();
  polled[awaited].events = events;
  for (;;) {
    const TimePoint now = real_clock().now();
    const TimePoint soon = std::min(wait.deadline, now + sleep_longest);
    MUSTER_TRY(const net::Readiness readiness,
               net::poll_until(polled, {.deadline = soon, .stop = wait.stop}));
    if (readiness == net::Readiness::stopped)
      return fail(Code::aborted, fmt::format("{} was stopped", to_string(message)));
    if (polled[awaited].revents != 0) return {};
    MUSTER_TRY_VOID(check_resets(polled));
    MUSTER_TRY_VOID(wait.look());
    if (now >= wait.deadline) return fail(too_late(message, wait, link.name));
  }
}

// Who leaves closes its connections; who ends the group resets them.
Result<> RemotePairs::check_resets(const std::vector<pollfd>& polled) const {
  for (std::size_t i = 0; i < links_.size(); ++i)
    if ((polled[i].revents & (POLLERR | POLLHUP)) != 0)
      return fail(Code::peer_lost, fmt::format("{} ended the group", links_[i].name));
  return {};
}

Result<> RemotePairs::look() const {
  if (links_.empty()) return {};
  std::vector<pollfd> polled = all_polled();
  MUSTER_TRY([[maybe_unused]] const net::Readiness readiness,
             net::poll_until(polled, {.deadline = real_clock().now()}));
  return check_resets(polled);
}

// ---- The end ----

void RemotePairs::reset() {
  for (MessageLink& link : links_) link.socket.reset();
}

void RemotePairs::finish() {
  for (MessageLink& link : links_) link.socket.finish_sending();
}

}  // namespace muster::collective
