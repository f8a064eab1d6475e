// The messages of one rank of another host to this one: a stream on which only the other side sends them, and
// this side answers now and then that it has them (docs/adr/0017-links.md).
//
// A machine of steps, which never waits. Threads: one at a time, the one that holds `mutex`.
#pragma once

#include <array>
#include <mutex>
#include <span>

#include "muster/base/base.h"
#include "muster/collective/frame_stream.h"
#include "muster/collective/frames.h"
#include "muster/collective/message.h"
#include "muster/collective/message_window.h"

namespace muster::collective {

class MessageReceiver {
 public:
  // `pair`: from the other rank to this one. There is no connection yet. The acceptor is borrowed.
  MessageReceiver(FrameOrigin origin, Ordered pair, ReconnectAcceptor& acceptor);

  // The next message: its head, which is due with the number that it gets here, then its data in parts.
  void begin(Message& message);
  void add(std::span<std::byte> part) { incoming_.add_incoming(FrameType::data, part); }
  bool is_full() const { return incoming_.frames() == message_frames_at_once; }
  bool is_done() const { return incoming_.done(); }
  // What was added has come, and there is room for more.
  void go_on() { incoming_.clear(); }
  // All of the message has come.
  void finish();

  // Goes on as far as it can; whether something moved. It fails when the other side is gone, or has sent
  // something else than what is due.
  Result<bool> advance();
  // Between messages: goes on with a connection that some rank found broken. Whether there is more to do.
  Result<bool> attend();
  // What `advance` waits for.
  Interest interest() const;

  std::mutex mutex;
  FrameStream stream;

 private:
  // More answers than the other side goes without.
  static constexpr std::size_t answers_kept = 4;

  FrameSource source() const { return {.origin = origin_, .sequence = message_.number}; }
  Result<std::size_t> receive_some();
  void send_answers();
  Result<> check_piece(std::size_t piece);
  Result<> check_header(std::size_t frame, const net::FrameHeader& header) const;
  Result<> compare();

  const FrameOrigin origin_;
  Message message_;  // the newest
  FrameList incoming_;
  MessageBytes head_{};
  MessageWindow window_;
  std::array<TakenBytes, answers_kept> answers_{};
  std::uint64_t answers_given_ = 0;
  MessageBytes mismatch_{};
};

}  // namespace muster::collective
