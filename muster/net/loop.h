// An event loop for the control plane: connections that carry frames, a timer, watched processes; on Asio.
//
// One thread runs the loop and everything it calls back; only `post` and `stop` may be called from others.
// Whatever belongs to a loop must be destroyed before it, on its thread or while it does not run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/address.h"
#include "muster/net/frame.h"
#include "muster/net/security.h"
#include "muster/net/unauthenticated_peers.h"

namespace muster::net {

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Serves events until `stop`, or for `time`.
  void run();
  void run_for(Duration time);
  // Serves what needs no waiting, and what that makes ready, also where `stop` is called meanwhile.
  void run_ready();
  void stop();
  void post(std::function<void()> act);

  // Calls `act` at `when`; a later call replaces an earlier one. TimePoint::max(): never.
  void set_timer(TimePoint when, std::function<void()> act);

  // Calls `act` once when the process `pid` has ended, at once if there is none, with its wait status if that
  // becomes known within some milliseconds. Nothing if it cannot be watched (an old kernel, no permission, no
  // free descriptor).
  void watch_process(std::int32_t pid, std::function<void(std::optional<int>)> act);

  class Implementation;
  Implementation& implementation() { return *implementation_; }  // for the rest of net/loop*

 private:
  std::unique_ptr<Implementation> implementation_;
};

// What a connection tells its owner. After `closed`, nothing more.
struct ConnectionEvents {
  std::function<void()> opened = {};  // of `connect` only; the other side is the expected one
  std::function<void(Frame)> received = {};
  // Everything that had arrived was delivered before. Code::refused: one side did not believe the other, or
  // TLS is on at one side only.
  std::function<void(const Error&)> closed = {};
};

struct ConnectionLimits {
  std::uint64_t payload_size_bytes = 0;  // of a received frame
  std::uint64_t unsent_size_bytes = 0;   // queued for a peer that does not read: the connection is closed
  UnauthenticatedLimits unauthenticated =
      {};  // of a listener's accepted connections, until they are admitted
  std::size_t members =
      0;  // descriptors that those who are admitted will need: unauthenticated peers have what they leave
};

// How the connections that a process makes are protected.
struct ConnectionSecurity {
  std::shared_ptr<const Security> security = {};  // null: plain
  Identity expected = {};                         // the peer that it must find
  std::string peer_name = {};                     // how errors call the other side; empty: by its address
};

// How those that it accepts are.
struct ListenerSecurity {
  std::shared_ptr<const Security> security = {};  // null: plain
  // The frame that tells a peer without TLS that it is refused, and why.
  std::function<std::vector<std::byte>(const std::string& reason)> plain_refusal = {};
};

// For a listener that any peer can reach: a peer becomes a connection only with its first
// whole frame, or with the first byte of TLS; until then it costs a descriptor, and those who send anything
// else little more.
struct Screening {
  // Whether a connection may begin with this frame; asked where nothing is encrypted. Null: no peer is
  // screened, and each is a connection at once.
  std::function<Result<>(const Frame&)> may_begin = {};
  // Peers that were rejected since the last call; not more often than ten times a second.
  std::function<void(const std::vector<RejectedPeer>&)> turned_away = {};
};

// A connection that carries frames. Destroying it closes it without a word.
class Connection {
 public:
  // Tries to connect, once; `opened` or `closed` tells how that went.
  static std::unique_ptr<Connection> connect(Loop& loop, const Address& address, ConnectionLimits limits,
                                             ConnectionEvents events, ConnectionSecurity security = {});
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void set_events(ConnectionEvents events);
  // Queues a whole frame (see encode_frame).
  void send(std::shared_ptr<const std::vector<std::byte>> frame);
  // The same, for one that goes to many: until it is encrypted it is counted for none of them as unread.
  void send_shared(std::shared_ptr<const std::vector<std::byte>> frame);
  // Sends what is queued, within a second, then closes; no more events.
  void finish();
  // An accepted connection is an unauthenticated peer (unauthenticated_peers.h): it is closed after a while,
  // and holds, sends and leaves unread little, until its owner knows that it belongs here and admits it.
  void admit();
  bool is_unauthenticated() const;
  const Address& peer() const;
  // What the other side's certificate says, once a frame has come; null where none was shown.
  const PeerNames* peer_names() const;
  // What one says that was shown and refused: an unverified claim. Null: there was none.
  const PeerNames* refused_names() const;

  class Implementation;
  explicit Connection(std::shared_ptr<Implementation> implementation);  // for the rest of net/loop*

 private:
  std::shared_ptr<Implementation> implementation_;
};

// Listens and accepts. An accepted connection is an unauthenticated peer, and reads once its events are set;
// where unauthenticated peers are screened, `accepted` must set them.
class ConnectionListener {
 public:
  static Result<std::unique_ptr<ConnectionListener>> open(
      Loop& loop, const Address& address, ConnectionLimits limits,
      std::function<void(std::unique_ptr<Connection>)> accepted, ListenerSecurity security = {},
      Screening screening = {});
  ~ConnectionListener();
  ConnectionListener(const ConnectionListener&) = delete;
  ConnectionListener& operator=(const ConnectionListener&) = delete;

  const Address& address() const;

  class Implementation;

 private:
  explicit ConnectionListener(std::shared_ptr<Implementation> implementation);
  std::shared_ptr<Implementation> implementation_;
};

}  // namespace muster::net
