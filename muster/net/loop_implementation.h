// Implementation that the files of net/loop* share; no other file includes it.
#pragma once

#include <asio.hpp>
#include <list>

#include "muster/net/descriptor.h"
#include "muster/net/loop.h"
#include "muster/net/socket_address.h"
#include "muster/net/tls_session.h"

namespace muster::net {

class Loop::Implementation {
 public:
  struct WatchedProcess {
    ProcessDescriptor fd;
    asio::posix::stream_descriptor watched;
    std::function<void(std::optional<int>)> act;
    asio::steady_timer timer;
    int asked = 0;  // for its status
  };
  using Place = std::list<WatchedProcess>::iterator;
  void tell_of_end(Place process);

  // One for all connections: what is read goes into a decoder at once.
  static constexpr std::size_t read_size_bytes = 64 << 10;

  asio::io_context context{1};
  std::vector<std::byte> read_buffer = std::vector<std::byte>(read_size_bytes);
  asio::steady_timer timer{context};
  std::list<WatchedProcess> processes;
};

// A socket of Asio whose descriptor is closed in forked children.
class LoopSocket {
 public:
  LoopSocket(asio::io_context& context, ProcessDescriptor fd, int family);
  ~LoopSocket() { close(); }
  LoopSocket(const LoopSocket&) = delete;
  LoopSocket& operator=(const LoopSocket&) = delete;

  void close();
  asio::ip::tcp::socket socket;

 private:
  ProcessDescriptor fd_;
};

// The unauthenticated peers of a listener. It and they share it, on the loop's thread.
class UnauthenticatedPool : public std::enable_shared_from_this<UnauthenticatedPool> {
 public:
  UnauthenticatedPool(Loop& loop, UnauthenticatedLimits limits, std::size_t members)
      : places_(limits.count, members),
        unauthenticated_(with_places(limits, places_)),
        timer_(loop.implementation().context) {}

  UnauthenticatedPeers::Id arrive(const std::string& ip);
  // The unauthenticated peer is a connection from now on.
  void seat(UnauthenticatedPeers::Id id, const std::shared_ptr<Connection::Implementation>& connection);
  // What becomes of an unauthenticated peer that is none yet and has to go.
  void set_drop_pending(std::function<void(UnauthenticatedPeers::Id, const std::string& why)> drop) {
    drop_pending_ = std::move(drop);
  }
  void hold(UnauthenticatedPeers::Id id, std::size_t size_bytes);
  void leave_unread(UnauthenticatedPeers::Id id, std::size_t size_bytes);
  void leave(UnauthenticatedPeers::Id id);
  // Makes room; false when there is no unauthenticated peer.
  bool make_room(const std::string& why);
  const UnauthenticatedLimits& limits() const { return unauthenticated_.limits(); }

 private:
  void drop(UnauthenticatedPeers::Id id, const std::string& why);
  void wait();
  void drop_overdue();

  UnauthenticatedSlots places_;
  UnauthenticatedPeers unauthenticated_;
  std::unordered_map<UnauthenticatedPeers::Id, std::weak_ptr<Connection::Implementation>> connections_;
  std::function<void(UnauthenticatedPeers::Id, const std::string&)> drop_pending_ = {};
  asio::steady_timer timer_;
  bool waits_ = false;
  UnauthenticatedPeers::Id last_id_ = 0;
};

class Connection::Implementation : public std::enable_shared_from_this<Connection::Implementation> {
 public:
  Implementation(Loop& loop, ProcessDescriptor fd, const Address& peer, int family, ConnectionLimits limits);

  void set_events(ConnectionEvents events);
  void connect(const SocketAddress& address, ConnectionSecurity security);
  // Both of an accepted connection.
  void enter(std::shared_ptr<UnauthenticatedPool> pool, UnauthenticatedPeers::Id id);
  void be_accepted(std::shared_ptr<const ListenerSecurity> security);
  void deliver(std::span<const std::byte> bytes);  // that have come
  void admit();
  bool is_unauthenticated() const { return pool_ != nullptr; }
  void start();  // reading, on an open connection
  void close(const Error& error);
  void send(std::shared_ptr<const std::vector<std::byte>> frame, bool is_shared);
  void finish();
  void abandon();
  void leave_to_itself();  // the owner is gone; what it finished is still sent
  const Address& peer() const { return peer_; }
  const PeerNames* peer_names() const { return tls_ ? tls_->peer_names() : nullptr; }
  const PeerNames* refused_names() const { return tls_ ? tls_->refused_names() : nullptr; }
  void fail_later(Error error);

 private:
  void read();
  void read_some();
  void deliver_frames(std::span<const std::byte> bytes);
  void report_held();
  void report_unread();
  std::size_t unread_in_kernel();
  Error end_of_stream() const;
  void queue(std::shared_ptr<const std::vector<std::byte>> bytes, bool is_shared = false);
  void write();
  void shut_down();
  void wait_to_finish();
  void tell_opened();

  // loop_security.cpp
  void start_tls(std::shared_ptr<const Security> security, TlsSession::Options options);
  void go_on_with_handshake();
  void decrypt(std::span<const std::byte> bytes);
  void queue_tls_output();
  bool is_still_believed();
  bool refuses_tls(std::span<const std::byte> bytes);
  void turn_away(const Error& error, std::vector<std::byte> last_words);
  void close_for(const Error& error);
  std::string name() const;

  enum class State { opening, open, finishing, closed };

  Loop& loop_;
  LoopSocket socket_;
  Address peer_;
  ConnectionLimits limits_;
  std::shared_ptr<ConnectionEvents> events_ = std::make_shared<ConnectionEvents>();
  State state_ = State::opening;
  bool reading_ = false;
  FrameDecoder decoder_;
  std::size_t discarded_size_bytes_ = 0;       // after `finish`
  std::shared_ptr<UnauthenticatedPool> pool_;  // null once it is admitted, or gone
  UnauthenticatedPeers::Id unauthenticated_id_ = 0;
  struct Unsent {
    std::shared_ptr<const std::vector<std::byte>> bytes;
    bool is_shared = false;  // with other connections, and counted elsewhere
  };
  std::list<Unsent> unsent_;
  std::size_t unsent_size_bytes_ = 0;
  bool writing_ = false;
  asio::steady_timer finish_timer_;  // also of the handshake

  std::unique_ptr<TlsSession> tls_;  // null: plain
  std::shared_ptr<const ListenerSecurity> listener_security_;
  std::string peer_name_;
  bool was_opened_ = false;  // its owner was told
  bool has_received_ = false;
  std::list<std::shared_ptr<const std::vector<std::byte>>> before_handshake_;
  TimePoint next_peer_check_{};
};

}  // namespace muster::net
