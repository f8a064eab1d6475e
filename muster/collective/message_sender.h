// The messages of this rank to one rank of another host: a stream on which only this side sends them, and the
// other side answers now and then that it has them. Until then they are kept (docs/adr/0017-links.md).
//
// A machine of steps, which never waits. Threads: one at a time, the one that holds `mutex`.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <span>

#include "muster/base/base.h"
#include "muster/collective/copies.h"
#include "muster/collective/frame_stream.h"
#include "muster/collective/frames.h"
#include "muster/collective/message.h"
#include "muster/collective/message_window.h"
#include "muster/net/net.h"

namespace muster::collective {

class MessageSender {
 public:
  // `pair`: from this rank to the other one. There is no connection yet. The acceptor is borrowed.
  MessageSender(FrameOrigin origin, Ordered pair, ReconnectAcceptor& acceptor);

  // The next message: its head, which gets its number here, then its data in parts. What is sent must stay as
  // it is until `keep`.
  void begin(Message& message);
  void add(std::span<const std::byte> part);
  bool is_full() const { return stream.queued_frames() == message_frames_at_once; }
  bool is_done() const { return stream.all_sent(); }
  // What was added is sent, and there is room for more.
  void go_on() { stream.finish_step(false); }
  // All of the message was added and sent. The caller's bytes may be kept, that is copied, at once, or when
  // the other side has answered so far that they are few.
  Result<> finish();
  bool may_keep() const;
  void keep();
  // It has failed, and the caller's bytes are read no more.
  void give_up() { has_failed_ = true; }

  // Goes on as far as it can; whether something moved. It fails when the other side is gone, or expected
  // another message.
  Result<bool> advance();
  // Takes what the other side has said.
  Result<bool> hear();
  // Between messages: goes on with a connection that some rank found broken. Whether there is more to do.
  Result<bool> attend();
  // What `advance` waits for.
  Interest interest() const;

  std::mutex mutex;
  FrameStream stream;

 private:
  FrameSource source() const { return {.origin = origin_, .sequence = message_.number}; }
  Result<> take(const net::Frame& answer);
  Result<> take_answer_to(std::uint64_t place);

  const FrameOrigin origin_;
  const Ordered pair_;
  Message message_;  // the newest
  MessageBytes head_{};
  MessageWindow window_;
  std::deque<std::uint64_t> awaited_;          // the places in the stream whose answers are due
  std::optional<std::uint64_t> early_answer_;  // to the message at hand, of which not all is known to be sent
  net::FrameDecoder answers_{std::tuple_size_v<MessageBytes>};
  Copies copies_;
  bool has_failed_ = false;
};

}  // namespace muster::collective
