// Messages between two ranks of different hosts, over connections of their own: what a rank sends may lie in
// front of the next collective call's frames, or arrive in the middle of them on another thread. With sockets
// of their own neither can be mistaken for the other, and neither waits for the other; the price is a second
// descriptor for each remote rank. Threads: one sends and one receives at a time; the two may be different.
#pragma once

#include <poll.h>

#include <mutex>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/frames.h"
#include "muster/collective/message.h"
#include "muster/collective/message_wait.h"
#include "muster/net/net.h"

namespace muster::collective {

// The connection for messages to and from one remote rank.
struct MessageLink {
  std::uint32_t rank;
  std::string name;  // "rank 2 (10.0.0.7:4000)"
  net::Socket socket;
  std::uint64_t sent = 0;  // messages
  std::uint64_t received = 0;
};

class RemotePairs {
 public:
  RemotePairs(FrameOrigin origin, std::vector<MessageLink> links);

  // The other rank of `message` is remote; it gets its number here.
  Result<> send(SentPieces pieces, Message message, const MessageWait& wait);
  Result<> receive(ReceivedPieces pieces, Message message, const MessageWait& wait);

  // Whether a peer has ended the group.
  Result<> look() const;
  // Tells all peers that the group has ended. Any thread.
  void reset();
  // What was sent still arrives, and nothing more. Any thread.
  void finish();

 private:
  MessageLink& link_to(std::uint32_t rank);
  Result<> send_all(MessageLink& link, const Message& message, const MessageWait& wait);
  Result<> receive_all(MessageLink& link, const Message& message, const MessageWait& wait);
  Result<> check_piece(MessageLink& link, std::size_t piece, const Message& message);
  Result<> compare(MessageLink& link, const Message& message);
  Error gone(const MessageLink& link, const Message& message) const;
  Error gone_while_sending(MessageLink& link, const Message& message);
  Result<> await(MessageLink& link, short events, const Message& message, const MessageWait& wait);
  Result<> check_resets(const std::vector<pollfd>& polled) const;
  std::vector<pollfd> all_polled() const;

  FrameOrigin origin_;
  std::vector<MessageLink> links_;  // by rank
  struct Way {                      // the message at hand, of one direction
    FrameList frames;
    MessageBytes head{};
  };
  Way outgoing_;
  Way incoming_;
  std::mutex writing_;  // held by the one that writes to a connection
};

}  // namespace muster::collective
