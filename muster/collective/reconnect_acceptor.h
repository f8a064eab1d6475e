// Reconnect acceptor: the listener that a rank keeps open as long as its group lives, so that broken
// connections between hosts can be made again, and what the rank needs to connect to others. It has no
// thread: a call serves it while it waits, a ReconnectWatch between calls.
//
// Threads: any.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/collective.h"
#include "muster/collective/handshakes.h"
#include "muster/collective/hello.h"
#include "muster/collective/reconnector.h"
#include "muster/net/net.h"

namespace muster::collective {

class ReconnectAcceptor {
 public:
  // `linked`: the ranks with which this one has a connection for calls, ascending. `clock` is borrowed.
  static Result<std::unique_ptr<ReconnectAcceptor>> open(std::shared_ptr<const Group> group,
                                                         std::vector<std::uint32_t> linked, Listener listener,
                                                         std::shared_ptr<const net::Security> security,
                                                         const Clock& clock);

  struct Stream {  // as this side sees it
    std::uint32_t rank = 0;
    Purpose purpose = Purpose::calls;
    std::uint32_t generation = 0;
    std::uint64_t received_bytes = 0;
  };
  // A peer that connected again for a link that broke, if any: not yet welcomed.
  struct Reconnection {
    net::Socket socket;
    std::uint32_t generation = 0;
    std::uint64_t received_bytes = 0;
    LinkKind kind = LinkKind::socket;
  };
  std::optional<Reconnection> take_reconnection(const Stream& stream);
  // Whether the other side has said that this very connection is broken.
  bool take_reconnect_request(const Stream& stream);
  // Something of these may be there.
  bool has_news() const { return has_news_.load(std::memory_order_relaxed); }
  // For which connections there is.
  using Key = std::pair<std::uint32_t, Purpose>;
  std::vector<Key> news() const;

  // Of two ranks the higher one calls.
  bool calls(std::uint32_t rank) const { return group_->rank > rank; }
  Reconnector reconnector(const Stream& stream) const;
  Result<> welcome(Reconnection& reconnection, std::uint64_t received_bytes) const;
  std::string name(std::uint32_t rank) const;
  const Clock& clock() const { return clock_; }

  // When this is readable, or the deadline has passed, `serve` has work.
  int fd() const { return handshakes_->fd(); }
  TimePoint deadline() const;
  // Hears every peer that is there, without waiting.
  void serve();
  // Peers that came before this listened.
  void take(std::vector<Handshakes::Candidate> early);
  // Rung when a thread leaves work on a connection to the one that serves the acceptor.
  const net::Bell& bell() const { return bell_; }
  // Connections for calls are not made again any more: a peer that asks for one is told the reason.
  void end_calls(const std::string& reason);
  // The group has ended: the system refuses new connections, and closes those that wait for an
  // answer, which none would get now.
  void shut();

 private:
  ReconnectAcceptor(std::shared_ptr<const Group> group, std::vector<std::uint32_t> linked,
                    net::TcpListener tcp, std::shared_ptr<const net::Security> security, LinkOffer offer,
                    net::Bell bell, const Clock& clock);
  FrameOrigin origin() const { return {.epoch = group_->epoch, .job_id = group_->job_id}; }
  void admit_all(std::vector<Handshakes::Candidate> candidates);
  Result<> admit(Handshakes::Candidate& candidate);
  Result<> answer(net::Socket& socket, const Welcome& welcome) const;
  bool is_awaited(const Hello& hello) const;

  const std::shared_ptr<const Group> group_;
  const std::vector<std::uint32_t> linked_;
  net::TcpListener tcp_;
  const std::shared_ptr<const net::Security> security_;
  const LinkOffer offer_;
  const net::Bell bell_;
  const Clock& clock_;
  std::atomic<bool> has_news_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::optional<Handshakes> handshakes_;
  std::map<Key, Reconnection> reconnections_;
  std::map<Key, std::uint32_t> reconnect_requests_;  // to be called: the generation that is broken
  std::optional<std::string> calls_over_;            // the reason
  bool is_shut_ = false;
};

}  // namespace muster::collective
