// Pending connections of the event loop, before their first bytes were checked: a descriptor and a few bytes
// each. A connection object is made only for a peer whose first bytes are those of a member; the others are
// rejected at once. Private to net/loop*; on the loop's thread.
#pragma once

#include <deque>
#include <unordered_map>

#include "muster/net/loop_implementation.h"
#include "muster/net/rejected_peers.h"
#include "muster/net/socket_address.h"

namespace muster::net {

class PendingConnections {
 public:
  struct Options {
    Screening screening = {};
    bool expects_tls = false;
    std::uint64_t payload_limit_bytes = 0;
  };
  // A peer that may be admitted, and what it has sent.
  struct Candidate {
    ProcessDescriptor fd;
    SocketAddress from;
    UnauthenticatedPeers::Id id = 0;
  };
  using Admit = std::function<void(Candidate candidate, std::span<const std::byte> said)>;

  // `admit` may not destroy the pending connections, but may close them.
  static Result<std::unique_ptr<PendingConnections>> open(Loop& loop,
                                                          std::shared_ptr<UnauthenticatedPool> pool,
                                                          Options options, Admit admit);
  ~PendingConnections() { close(); }
  PendingConnections(const PendingConnections&) = delete;
  PendingConnections& operator=(const PendingConnections&) = delete;

  void arrive(int fd, const SocketAddress& from);
  // A peer was rejected a moment ago: more may follow.
  bool is_flooded() const { return tells_; }
  void close();

 private:
  struct Waiting {
    ProcessDescriptor fd;
    SocketAddress from;
    std::vector<std::byte> said = {};
  };
  enum class Verdict { waits, comes_in, leaves };

  PendingConnections(Loop& loop, std::shared_ptr<UnauthenticatedPool> pool, Options options, Admit admit,
                     ProcessDescriptor epoll);
  void wait();
  void serve();
  void listen_to(UnauthenticatedPeers::Id id);
  void drop(UnauthenticatedPeers::Id id, const std::string& why);
  Verdict judge(std::span<const std::byte> said, const SocketAddress& from);
  bool may_be_answered();
  void turn_away(const SocketAddress& from, const std::string& reason);
  void tell_later();

  Loop& loop_;
  const std::shared_ptr<UnauthenticatedPool> pool_;
  const Options options_;
  const Admit admit_;
  std::unordered_map<UnauthenticatedPeers::Id, Waiting> waiting_;
  ProcessDescriptor epoll_;  // of the pending connections: the loop watches it instead of each of them
  asio::posix::stream_descriptor watched_;
  RejectedPeerTally tally_;
  asio::steady_timer tell_timer_;
  bool tells_ = false;
  bool closed_ = false;
  TimePoint answers_since_ = {};
  int answers_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for handlers that come too late
};

}  // namespace muster::net
