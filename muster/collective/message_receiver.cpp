#include "muster/collective/message_receiver.h"

#include <fmt/format.h>
#include <poll.h>

namespace muster::collective {
namespace {

constexpr std::size_t answer_size_bytes = net::frame_header_size_bytes + std::tuple_size_v<TakenBytes>;

}  // namespace

MessageReceiver::MessageReceiver(FrameOrigin origin, Ordered pair, ReconnectAcceptor& acceptor)
    : stream(pair.from, message_purpose(pair.from, pair.to), acceptor), origin_(origin) {}

void MessageReceiver::begin(Message& message) {
  message.number = message_.number + 1;
  message_ = message;
  incoming_.clear();
  incoming_.add_incoming(FrameType::message, head_);
}

// The sender begins no message after a place where an answer is due before it has the answer to the place
// before. So the answer before the last one is there when the next is given.
void MessageReceiver::finish() {
  go_on();
  if (!window_.add(message_)) return;
  TakenBytes& answer = answers_[answers_given_ % answers_kept];
  net::store_little(answer.data(), stream.received_bytes());
  stream.add(FrameType::taken, answer, source());
  if (++answers_given_ > 2) stream.forget_before((answers_given_ - 2) * answer_size_bytes);
  send_answers();
}

void MessageReceiver::send_answers() {
  while (stream.send_some()) continue;
  if (stream.queued_frames() > 0 && stream.all_sent()) stream.finish_step(false);
}

// What the other side sent before it left is read, even though no answer reaches it any more.
Result<bool> MessageReceiver::advance() {
  if (!stream.is_whole()) return stream.mend();
  send_answers();
  MUSTER_TRY(const std::size_t received, receive_some());
  if (received > 0) return true;
  MUSTER_TRY_VOID(stream.give_up_sending());
  MUSTER_TRY_VOID(stream.look_at_news());
  return !stream.is_whole();
}

Result<std::size_t> MessageReceiver::receive_some() {
  std::array<iovec, FrameList::piece_limit> pieces;
  MUSTER_TRY(const std::size_t received, stream.receive_some(incoming_.rest(pieces)));
  for (std::size_t left = received; left > 0;) {
    const std::size_t piece = incoming_.piece();
    left -= incoming_.take(left);
    if (incoming_.piece() != piece) MUSTER_TRY_VOID(check_piece(piece));
  }
  return received;
}

Result<> MessageReceiver::check_piece(std::size_t piece) {
  const std::size_t frame = piece / 2;
  const auto header = net::decode_header(incoming_.header(frame), payload_limit_bytes);
  if (!header) return fail(Code::corrupt, fmt::format("{} sent {}", stream.name(), header.error().message));
  if (piece % 2 == 0) return check_header(frame, *header);
  if (auto sound = net::check_payload(*header, incoming_.payload(frame)); !sound)
    return fail(Code::corrupt, fmt::format("{}: {}", stream.name(), sound.error().message));
  return incoming_.type(frame) == FrameType::message ? compare() : Result<>{};
}

Result<> MessageReceiver::check_header(std::size_t frame, const net::FrameHeader& header) const {
  if (auto sound = check_origin(header, origin_); !sound)
    return fail(sound.error().code, fmt::format("a frame of {}: {}", stream.name(), sound.error().message));
  const auto due = static_cast<std::uint16_t>(incoming_.type(frame));
  const std::size_t due_bytes = incoming_.payload(frame).size();
  if (header.type == due && header.sequence == message_.number && header.payload_size_bytes == due_bytes)
    return {};
  return fail(Code::corrupt,
              fmt::format("{} sent a frame of type {:#06x} for message #{} with {} bytes during {}; due were "
                          "type {:#06x} and {} bytes",
                          stream.name(), header.type, header.sequence, header.payload_size_bytes,
                          to_string(message_), due, due_bytes));
}

// The sender is told as far as that goes: the group ends either way.
Result<> MessageReceiver::compare() {
  MUSTER_TRY(const Message sent, decode_message(head_, message_));
  if (sent == message_) return {};
  mismatch_ = encode_mismatch(sent, message_);
  stream.add(FrameType::mismatch, mismatch_, source());
  while (stream.send_some()) continue;
  return fail(mismatch(sent, message_));
}

Interest MessageReceiver::interest() const { return {.reading = true, .writing = !stream.all_sent()}; }

// Where answers fail, there may be messages to read.
Result<bool> MessageReceiver::attend() {
  MUSTER_TRY(const bool has_more, stream.attend());
  send_answers();
  return has_more && !stream.send_failed();
}

}  // namespace muster::collective
