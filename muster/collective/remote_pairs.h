// Messages between two ranks of different hosts, over connections of their own: what a rank sends may lie in
// front of the next collective call's frames, or arrive in the middle of them on another thread. With sockets
// of their own neither can be mistaken for the other, and neither waits for the other. Each way has one,
// which is made when the first of the two ranks sends or receives on it. A connection that breaks while both
// ranks live is made again, and no message is lost.
//
// Threads: one sends and one receives at a time; the two may be different.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/message.h"
#include "muster/collective/message_receiver.h"
#include "muster/collective/message_sender.h"
#include "muster/collective/message_wait.h"
#include "muster/collective/reconnect_acceptor.h"
#include "muster/net/net.h"

namespace muster::collective {

class RemotePairs {
 public:
  // The acceptor is borrowed; null where no rank is remote.
  RemotePairs(FrameOrigin origin, std::uint32_t rank, ReconnectAcceptor* acceptor)
      : origin_(origin), rank_(rank), acceptor_(acceptor) {}

  // The other rank of `message` is remote; it gets its number here.
  Result<> send(SentPieces pieces, Message message, const MessageWait& wait);
  Result<> receive(ReceivedPieces pieces, Message message, const MessageWait& wait);

  // Whether a peer has ended the group.
  Result<> look();
  // Between messages, on any thread: goes on, without waiting, with connections that another rank found
  // broken, and with what it has not got. Whether there is more to do.
  bool attend();
  // Tells all peers that the group has ended. Any thread.
  void reset();
  // Whether the certificates of all peers are still good. Any thread.
  Result<> check_peers();
  // What was sent still arrives, and nothing more: waits, for a while, until the others' systems have it. Any
  // thread.
  void finish();

 private:
  template <class Way, class Pieces>
  Result<> pass(Way& way, const Pieces& pieces, Message& message, const MessageWait& wait);
  template <class Way, class Done>
  Result<> run(Way& way, const Done& is_done, const Message& message, const MessageWait& wait);
  Result<> await(const FrameStream& stream, Interest interest, const Message& message,
                 const MessageWait& wait);
  std::vector<MessageSender*> add_senders_to(WaitList& waits, const FrameStream* but);
  Result<> hear_ends(const WaitList& waits, std::size_t first, std::span<MessageSender* const> senders);
  Result<> hear(MessageSender& sender);
  Result<bool> attend_others(const FrameStream* but);
  template <class Ways>
  Result<bool> attend_each(Ways& ways, const FrameStream* but);
  Error why(const Error& gone, std::uint32_t rank);

  MessageSender& sender_to(std::uint32_t rank);
  MessageReceiver& receiver_from(std::uint32_t rank);
  void make_ways_for_news();

  const FrameOrigin origin_;
  const std::uint32_t rank_;
  ReconnectAcceptor* const acceptor_;
  std::mutex
      ways_mutex_;  // guards which ways there are, and over_. A thread that holds it waits for no way's mutex
  bool over_ = false;
  std::map<std::uint32_t, MessageSender> senders_;      // by rank; none goes before the end
  std::map<std::uint32_t, MessageReceiver> receivers_;  // likewise
};

}  // namespace muster::collective
