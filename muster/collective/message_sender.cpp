#include "muster/collective/message_sender.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <utility>

namespace muster::collective {

MessageSender::MessageSender(FrameOrigin origin, Ordered pair, ReconnectAcceptor& acceptor)
    : stream(pair.to, message_purpose(pair.from, pair.to), acceptor), origin_(origin), pair_(pair) {}

void MessageSender::begin(Message& message) {
  message.number = message_.number + 1;
  message_ = message;
  head_ = encode(message);
  stream.add(FrameType::message, head_, source());
}

void MessageSender::add(std::span<const std::byte> part) { stream.add(FrameType::data, part, source()); }

Result<> MessageSender::finish() {
  go_on();
  if (window_.add(message_)) awaited_.push_back(stream.step_begin());
  if (const auto early = std::exchange(early_answer_, {})) return take_answer_to(*early);
  return {};
}

// A connection that broke meanwhile is made again first: afterwards no thread may look after it for long.
bool MessageSender::may_keep() const {
  const bool is_little =
      awaited_.empty() || (awaited_.size() == 1 && stream.kept_bytes() <= copied_limit_bytes);
  return is_little && stream.is_whole() && stream.all_sent();
}

void MessageSender::keep() {
  stream.own_kept(copies_);
  copies_.forget();
}

Result<bool> MessageSender::advance() {
  if (!stream.is_whole()) return stream.mend();
  const bool sent = stream.send_some();
  bool heard = false;
  if (!awaited_.empty() || stream.send_failed()) {
    MUSTER_TRY(heard, hear());
  }
  MUSTER_TRY_VOID(stream.give_up_sending());
  MUSTER_TRY_VOID(stream.look_at_news());
  return sent || heard || !stream.is_whole();
}

Result<bool> MessageSender::hear() {
  bool heard = false;
  for (;;) {
    std::array<std::byte, 256> bytes;
    const iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
    MUSTER_TRY(const std::size_t came, stream.receive_some({&piece, 1}));
    if (came == 0) return heard || !stream.is_whole();
    heard = true;
    answers_.append(std::span(bytes).first(came));
    for (;;) {
      auto frame = answers_.next();
      if (!frame)
        return fail(Code::corrupt, fmt::format("{} answered {}", stream.name(), frame.error().message));
      if (!*frame) break;
      MUSTER_TRY_VOID(take(**frame));
    }
  }
}

Result<> MessageSender::take(const net::Frame& answer) {
  if (auto sound = check_origin(answer.header, origin_); !sound)
    return fail(sound.error().code, fmt::format("a frame of {}: {}", stream.name(), sound.error().message));
  const auto type = static_cast<FrameType>(answer.header.type);
  if (type == FrameType::mismatch && answer.payload.size() == std::tuple_size_v<MessageBytes>)
    return fail(decode_mismatch(std::span(answer.payload).first<std::tuple_size_v<MessageBytes>>(), pair_));
  net::ByteReader reader(answer.payload);
  const auto taken = reader.number<std::uint64_t>();
  if (type != FrameType::taken || !reader.finish("an answer"))
    return fail(Code::corrupt,
                fmt::format("{} answered with a frame of type {:#06x} of {} bytes, which is no answer",
                            stream.name(), answer.header.type, answer.payload.size()));
  if (taken <= stream.step_begin()) return take_answer_to(taken);
  early_answer_ = taken;
  return {};
}

Result<> MessageSender::take_answer_to(std::uint64_t place) {
  if (awaited_.empty() || place != awaited_.front())
    return fail(Code::corrupt,
                fmt::format("{} says that it has taken {} bytes, which is not what it was asked",
                            stream.name(), place));
  awaited_.pop_front();
  stream.forget_before(place);
  return {};
}

Result<bool> MessageSender::attend() {
  if (has_failed_) return false;
  MUSTER_TRY(const bool has_more, stream.attend());
  MUSTER_TRY_VOID(stream.give_up_sending());
  return has_more;
}

Interest MessageSender::interest() const {
  return {.reading = !awaited_.empty(), .writing = !stream.all_sent()};
}

}  // namespace muster::collective
