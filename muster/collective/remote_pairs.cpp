#include "muster/collective/remote_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "muster/collective/waiting.h"

namespace muster::collective {
namespace {

// A data frame at most: its checksum is known before it goes, and the next one is made while it travels.
constexpr std::size_t part_limit_bytes = 1 << 20;
// While a connection is being made again, who waits for something else looks so often.
constexpr Duration look_interval = std::chrono::milliseconds(2);
// Who leaves waits so long for those who have not yet read what was sent.
constexpr Duration delivery_longest = std::chrono::seconds(10);

}  // namespace

// A way that comes too late finds the acceptor closed.
MessageSender& RemotePairs::sender_to(std::uint32_t rank) {
  const std::lock_guard lock(ways_mutex_);
  const auto [way, is_new] =
      senders_.try_emplace(rank, origin_, Ordered{.from = rank_, .to = rank}, *acceptor_);
  if (is_new && over_) way->second.stream.reset();
  return way->second;
}

MessageReceiver& RemotePairs::receiver_from(std::uint32_t rank) {
  const std::lock_guard lock(ways_mutex_);
  const auto [way, is_new] =
      receivers_.try_emplace(rank, origin_, Ordered{.from = rank, .to = rank_}, *acceptor_);
  if (is_new && over_) way->second.stream.reset();
  return way->second;
}

// The rank that uses a way first connects to the other one, or asks it to connect.
void RemotePairs::make_ways_for_news() {
  if (!acceptor_->has_news()) return;
  for (const auto& [rank, purpose] : acceptor_->news()) {
    if (purpose == Purpose::calls) continue;
    if (purpose == message_purpose(rank_, rank))
      sender_to(rank);
    else
      receiver_from(rank);
  }
}

Result<> RemotePairs::send(SentPieces pieces, Message message, const MessageWait& wait) {
  MessageSender& sender = sender_to(message.to);
  const std::lock_guard lock(sender.mutex);
  const auto sent =
      pass(sender, pieces, message, wait).and_then([&] { return sender.finish(); }).and_then([&] {
        return run(
            sender, [&] { return sender.may_keep(); }, message, wait);
      });
  if (sent)
    sender.keep();
  else
    sender.give_up();
  return sent;
}

Result<> RemotePairs::receive(ReceivedPieces pieces, Message message, const MessageWait& wait) {
  MessageReceiver& receiver = receiver_from(message.from);
  const std::lock_guard lock(receiver.mutex);
  const auto received = pass(receiver, pieces, message, wait);
  if (!received) return fail(why(received.error(), message.from));
  receiver.finish();
  return {};
}

// All pieces of a message, in parts, one way or the other.
template <class Way, class Pieces>
Result<> RemotePairs::pass(Way& way, const Pieces& pieces, Message& message, const MessageWait& wait) {
  const auto pass_added = [&] {
    return run(
        way, [&] { return way.is_done(); }, message, wait);
  };
  way.begin(message);
  for (auto rest : pieces)
    while (!rest.empty()) {
      if (way.is_full()) {
        MUSTER_TRY_VOID(pass_added());
        way.go_on();
      }
      const std::size_t now = std::min(rest.size(), part_limit_bytes);
      way.add(rest.first(now));
      rest = rest.subspan(now);
    }
  return pass_added();
}

// One message's way, until it is done.
template <class Way, class Done>
Result<> RemotePairs::run(Way& way, const Done& is_done, const Message& message, const MessageWait& wait) {
  while (!is_done()) {
    const auto moved = way.advance();
    if (!moved && moved.error().code == Code::peer_lost)
      return fail(Code::peer_lost, fmt::format("{} is gone: its connection closed during {} ({})",
                                               way.stream.name(), to_string(message), moved.error().message));
    if (!moved) return fail(moved.error());
    if (!*moved && !is_done()) MUSTER_TRY_VOID(await(way.stream, way.interest(), message, wait));
  }
  return {};
}

// Who is gone may have said before, on the other way, that it expected another message of this rank.
Error RemotePairs::why(const Error& gone, std::uint32_t rank) {
  if (gone.code != Code::peer_lost) return gone;
  const std::lock_guard lock(ways_mutex_);
  const auto way = senders_.find(rank);
  if (way == senders_.end()) return gone;
  const auto heard = hear(way->second);
  return heard ? gone : heard.error();
}

// ---- Waiting ----

// For something on one stream, while the others are looked after.
Result<> RemotePairs::await(const FrameStream& stream, Interest interest, const Message& message,
                            const MessageWait& wait) {
  for (;;) {
    MUSTER_TRY(const bool others_have_more, attend_others(&stream));
    WaitList waits;
    stream.add_to(waits, interest);
    const std::size_t own = waits.size();
    const auto others = add_senders_to(waits, &stream);
    const TimePoint now = acceptor_->clock().now();
    const bool is_mending = others_have_more || !stream.is_whole();
    const TimePoint soon =
        std::min({wait.deadline, now + (is_mending ? look_interval : wait_slice), stream.next_step()});
    MUSTER_TRY(const net::Readiness readiness, waits.wait({.deadline = soon, .stop = wait.stop}));
    if (readiness == net::Readiness::stopped)
      return fail(Code::aborted, fmt::format("{} was stopped", to_string(message)));
    if (own > 0 && waits.is_ready(0)) return {};
    MUSTER_TRY_VOID(hear_ends(waits, own, others));
    MUSTER_TRY_VOID(wait.look());
    if (now >= wait.deadline) return fail(too_late(message, wait, stream.name()));
    if (!stream.is_whole() || acceptor_->has_news()) return {};
  }
}

Result<> RemotePairs::look() {
  if (acceptor_ == nullptr) return {};
  WaitList waits;
  const auto senders = add_senders_to(waits, nullptr);
  waits.look();
  MUSTER_TRY_VOID(hear_ends(waits, 0, senders));
  MUSTER_TRY_VOID(attend_others(nullptr));
  return {};
}

// Those to whom something is sent: who ends the group resets these connections too.
std::vector<MessageSender*> RemotePairs::add_senders_to(WaitList& waits, const FrameStream* but) {
  std::vector<MessageSender*> added;
  const std::lock_guard ways_lock(ways_mutex_);
  for (auto& [rank, sender] : senders_) {
    if (&sender.stream == but) continue;
    const std::unique_lock lock(sender.mutex, std::try_to_lock);
    if (!lock || !sender.stream.is_whole()) continue;
    sender.stream.add_to(waits, {});
    added.push_back(&sender);
  }
  return added;
}

Result<> RemotePairs::hear_ends(const WaitList& waits, std::size_t first,
                                std::span<MessageSender* const> senders) {
  for (std::size_t i = 0; i < senders.size(); ++i)
    if (waits.has_ended(first + i)) MUSTER_TRY_VOID(hear(*senders[i]));
  return {};
}

// The thread that has the lock hears it itself.
Result<> RemotePairs::hear(MessageSender& sender) {
  const std::unique_lock lock(sender.mutex, std::try_to_lock);
  if (lock) MUSTER_TRY_VOID(sender.hear());
  return {};
}

// A rank from which messages came may have left after its last one; to reach one to which messages go again
// must be possible while the group lives. What is left to do when this wait ends is another's work.
Result<bool> RemotePairs::attend_others(const FrameStream* but) {
  make_ways_for_news();
  MUSTER_TRY(const bool senders_have_more, attend_each(senders_, but));
  const bool more = attend_each(receivers_, but).value_or(false) || senders_have_more;
  if (more) acceptor_->bell().ring();
  return more;
}

bool RemotePairs::attend() {
  make_ways_for_news();
  const bool senders_have_more = attend_each(senders_, nullptr).value_or(false);
  return attend_each(receivers_, nullptr).value_or(false) || senders_have_more;
}

// All of them, whatever becomes of some. Those at which a thread is at work look after themselves, but may
// have looked for news just before there were some.
template <class Ways>
Result<bool> RemotePairs::attend_each(Ways& ways, const FrameStream* but) {
  bool more = false;
  Result<> reached;
  const std::lock_guard ways_lock(ways_mutex_);
  for (auto& [rank, way] : ways) {
    if (&way.stream == but) continue;
    const std::unique_lock lock(way.mutex, std::try_to_lock);
    if (!lock) {
      more = more || acceptor_->has_news();
      continue;
    }
    const auto has_more = way.attend();
    more = more || has_more.value_or(false);
    if (!has_more && reached)
      reached = fail(has_more.error().code,
                     fmt::format("{} ended the group: {}", way.stream.name(), has_more.error().message));
  }
  if (!reached) return fail(reached.error());
  return more;
}

// ---- The end ----

Result<> RemotePairs::check_peers() {
  const std::lock_guard lock(ways_mutex_);
  for (auto& [rank, sender] : senders_) MUSTER_TRY_VOID(sender.stream.check_peer());
  for (auto& [rank, receiver] : receivers_) MUSTER_TRY_VOID(receiver.stream.check_peer());
  return {};
}

void RemotePairs::reset() {
  const std::lock_guard lock(ways_mutex_);
  over_ = true;
  for (auto& [rank, sender] : senders_) sender.stream.reset();
  for (auto& [rank, receiver] : receivers_) receiver.stream.reset();
}

// A process that has ended answers an answer by a reset, and its system forgets what is not yet delivered.
void RemotePairs::finish() {
  std::vector<FrameStream*> sending;
  {
    const std::lock_guard lock(ways_mutex_);
    over_ = true;
    for (auto& [rank, sender] : senders_) sending.push_back(&sender.stream);
    for (FrameStream* const stream : sending) stream->finish_sending();
    for (auto& [rank, receiver] : receivers_) receiver.stream.finish_sending();
  }
  if (sending.empty()) return;
  const TimePoint deadline = acceptor_->clock().now() + delivery_longest;
  const auto is_delivered = [](FrameStream* stream) { return stream->is_delivered(); };
  while (!std::ranges::all_of(sending, is_delivered) && acceptor_->clock().now() < deadline)
    std::this_thread::sleep_for(look_interval);
}

}  // namespace muster::collective
