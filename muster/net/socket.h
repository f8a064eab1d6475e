// Stream sockets of the data plane: TCP between hosts, unix sockets between processes of one host. All are
// non-blocking and close-on-exec; calls that wait take a Wait.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "muster/base/base.h"
#include "muster/net/address.h"
#include "muster/net/descriptor.h"
#include "muster/net/security.h"

namespace muster::net {

class TlsChannel;

// How a socket goes over to TLS.
struct SocketSecurity {
  std::shared_ptr<const Security> security = {};
  bool listens = false;                   // this side accepted the connection
  std::optional<Identity> expected = {};  // none: any certificate that is believed
  std::string peer_name = {};             // how errors call the other side; empty: as the socket does
  bool serves_anyone =
      false;  // who connects needs no certificate: pages for browsers. With certificates only
};

class Socket {
 public:
  // A socket that is already connected and non-blocking. `peer` is how errors name the other side.
  Socket(ProcessDescriptor fd, std::string peer) : fd_(std::move(fd)), peer_(std::move(peer)) {}

  // Tries again while no process listens there, until the deadline.
  static Result<Socket> connect(const Address& address, const Wait& wait);
  // One attempt, begun without waiting. Then `finish_connecting` says whether it is through; once the socket
  // can be written to, it is, or it has failed as net::connect_error has it.
  static Result<Socket> begin_connecting(const Address& address);
  Result<bool> finish_connecting(const Address& address);
  // To a LocalListener of this network namespace. The other side must run as this user.
  static Result<Socket> connect_local(const std::string& name, const Wait& wait);

  // As many bytes as go at once; 0 when none do. Receiving reports the end of the stream as Code::peer_lost.
  Result<std::size_t> send_some(std::span<const iovec> pieces);
  Result<std::size_t> receive_some(std::span<const iovec> pieces);

  // TLS from here on, before anything else was sent; what is sent and received above and below is encrypted.
  // `begin_tls` only prepares it: then `shake_hands` goes on without waiting, until it returns true.
  Result<> start_tls(SocketSecurity security, const Wait& wait);
  Result<> begin_tls(SocketSecurity security);
  Result<bool> shake_hands();
  // What a handshake that is not through waits for, as poll has it.
  short awaited_events() const;
  // What its TLS holds of bytes that have come.
  std::size_t held_size_bytes() const;
  // Whether the other side's certificate is still good, if another revocation list has come since. Any
  // thread.
  Result<> check_peer_again() const;
  // After a handshake that failed: the other side spoke plain Muster. `end_tls` lets it be answered in kind.
  bool spoke_plain() const;
  void end_tls() { tls_.reset(); }
  // What the other side's certificate says, once the handshake is through; null where none was shown.
  const PeerNames* peer_names() const;

  Result<> send_all(std::span<const std::byte> bytes, const Wait& wait);
  Result<> receive_all(std::span<std::byte> bytes, const Wait& wait);

  // Unix sockets only: one descriptor with one byte beside the stream, not encrypted.
  Result<> send_fd(int fd, const Wait& wait);
  Result<ProcessDescriptor> receive_fd(const Wait& wait);

  // The other side reads an end of stream after what was already sent. Any thread.
  void finish_sending();
  // TCP only: ends the connection both ways, and the other side's polls report it even when it neither
  // reads nor writes. Any thread.
  void reset();

  int fd() const { return fd_.get(); }
  const std::string& peer() const { return peer_; }

 private:
  friend class TlsChannel;
  struct ReleaseTls {
    void operator()(TlsChannel* channel) const;
  };
  Result<> wait_for(short events, const Wait& wait) const;
  Result<std::size_t> send_plain(std::span<const iovec> pieces);
  Result<std::size_t> receive_plain(std::span<const iovec> pieces);

  ProcessDescriptor fd_;
  std::string peer_;
  std::unique_ptr<TlsChannel, ReleaseTls> tls_;  // null: plain
};

// What a listener's accept() found; unauthorized peers can cause no error of it.
struct Arrival {
  std::optional<Socket> socket = {};  // none: no connection waits
  bool lacks_descriptor = false;      // one waits: close something, or try again later
};

// Listens on a TCP address; port 0 takes a free one.
class TcpListener {
 public:
  static Result<TcpListener> open(const Address& address);
  // For a child of fork(), which closes all else that listens here: a copy that is made before, and what the
  // child makes of it.
  Result<Descriptor> duplicate() const;
  static TcpListener adopt(Descriptor copy, Address address);
  // The next connection that waits.
  Arrival accept();
  // No peer can connect any more, and those that wait to be accepted are told so. Any thread.
  void shut();
  int fd() const { return fd_.get(); }
  const Address& address() const { return address_; }

 private:
  TcpListener(ProcessDescriptor fd, Address address) : fd_(std::move(fd)), address_(std::move(address)) {}
  ProcessDescriptor fd_;
  Address address_;
};

// Listens on an abstract unix socket with a random name, which leaves nothing in the file system.
class LocalListener {
 public:
  static Result<LocalListener> open();
  // The next connection that waits; those of other users are closed unseen.
  Arrival accept();
  int fd() const { return fd_.get(); }
  const std::string& name() const { return name_; }

 private:
  LocalListener(ProcessDescriptor fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}
  ProcessDescriptor fd_;
  std::string name_;
};

}  // namespace muster::net
