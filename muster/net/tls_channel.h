// TLS over a socket of the data plane. Private to net.
//
// Threads: one may send while another receives.
#pragma once

#include <sys/uio.h>

#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "muster/net/tls_session.h"

namespace muster::net {

class Socket;

class TlsChannel {
 public:
  // `reads_ahead`: whether it may take more from the socket than the record that it needs. Not where plain
  // bytes follow, as beside a descriptor.
  TlsChannel(std::unique_ptr<TlsSession> session, bool reads_ahead)
      : session_(std::move(session)), reads_ahead_(reads_ahead) {}

  // As those of Socket; `socket` carries the ciphertext.
  Result<bool> shake_hands(Socket& socket);
  Result<std::size_t> send_some(Socket& socket, std::span<const iovec> pieces);
  Result<std::size_t> receive_some(Socket& socket, std::span<const iovec> pieces);
  void finish(Socket& socket);
  bool has_output() const;
  // Of the other side's bytes, those that were not yet received.
  std::size_t held_size_bytes() const;
  Result<> check_peer_again();

  // Once the handshake is through they do not change.
  bool spoke_plain() const { return session_->spoke_plain(); }
  const PeerNames* peer_names() const { return session_->peer_names(); }

 private:
  Result<> flush(Socket& socket);
  // False when nothing has come.
  Result<bool> take_input(Socket& socket);
  std::size_t wanted_bytes() const;
  void follow_records(std::span<const std::byte> bytes);
  Result<std::size_t> read_into(std::span<std::byte> bytes, Socket& socket);

  mutable std::mutex mutex_;
  std::unique_ptr<TlsSession> session_;
  const bool reads_ahead_;
  std::vector<std::byte> buffer_;     // ciphertext, of which the session has not used all
  std::size_t unreported_bytes_ = 0;  // plain ones, whose ciphertext is not yet all sent
  // Where in the stream of records we are, when not reading ahead.
  std::array<std::byte, 5> record_header_{};
  std::size_t record_header_size_ = 0;
  std::size_t record_left_bytes_ = 0;
};

}  // namespace muster::net
