// Link over a stream socket: TCP, plain or with TLS.
#pragma once

#include "muster/collective/link.h"

namespace muster::collective {

class SocketLink final : public Link {
 public:
  explicit SocketLink(net::Socket socket) : socket_(std::move(socket)) {}

  Result<std::size_t> send_some(std::span<const iovec> pieces) override { return socket_.send_some(pieces); }
  Result<std::size_t> receive_some(std::span<const iovec> pieces) override {
    return socket_.receive_some(pieces);
  }
  void add_to(WaitList& waits, Interest interest) const override { waits.add(socket_.fd(), interest); }
  bool is_broken() override;
  void finish_sending() override { socket_.finish_sending(); }
  bool is_delivered() const override;
  void close() override;
  void reset() override { socket_.reset(); }
  Result<> check_peer() const override { return socket_.check_peer_again(); }

 private:
  net::Socket socket_;
};

}  // namespace muster::collective
