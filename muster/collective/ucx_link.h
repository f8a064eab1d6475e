// Link over UCX. The socket on which both sides have said who they are stays beside it: over it they tell
// each other the addresses of their ports, and where the stream ends; and its end says that the other side is
// gone.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "muster/collective/link.h"
#include "muster/collective/ucx_library.h"
#include "muster/collective/ucx_pump.h"
#include "muster/collective/ucx_stream.h"

namespace muster::collective {

// What both the owner of a link and the pump work at.
class UcxConnection final : public UcxPump::Work {
 public:
  explicit UcxConnection(net::Socket socket);
  ~UcxConnection() override;

  Result<std::size_t> send_some(std::span<const iovec> pieces);
  Result<std::size_t> receive_some(std::span<const iovec> pieces);
  void add_to(WaitList& waits, Interest interest);
  bool is_broken();
  void finish_sending();
  bool is_delivered();
  void close();
  void reset() { socket_.reset(); }

  bool pump() override;

 private:
  enum class Ending { none, sending, both };
  enum class Look { ready, armed, left_to_pump };  // before a wait

  Result<> begin();
  Result<> send_on_socket(const std::vector<std::byte>& frame);
  void hear_socket();
  Result<> take_frames();
  Result<> take(const net::Frame& frame);
  void connect();
  std::optional<Error> failure() const;
  bool is_at_end() const;
  Look look(Interest interest);
  void end(Ending ending);
  bool go_on_ending();
  void keep_going();
  void stop_waiting();
  bool opens();

  net::Socket socket_;
  net::Bell bell_;  // the pump has taken something for who waits
  const std::uint32_t fork_count_ = net::fork_count();
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<UcxStream> stream_;
  std::optional<Error> error_;  // of this side, or a socket that says what it should not
  net::FrameDecoder from_socket_;
  std::optional<std::vector<std::byte>> far_address_;  // to connect to
  bool is_socket_over_ = false;
  std::optional<std::uint64_t> end_;  // of what the other side sends: messages
  Ending ending_ = Ending::none;      // what this side has been asked for
  bool is_end_said_ = false;
  bool is_waited_for_ = false;
  bool is_pumped_ = false;
  int quiet_turns_ = 0;  // of the pump
  std::shared_ptr<UcxPump> pump_;
};

class UcxLink final : public Link {
 public:
  explicit UcxLink(net::Socket socket) : connection_(std::make_unique<UcxConnection>(std::move(socket))) {}

  Result<std::size_t> send_some(std::span<const iovec> pieces) override {
    return connection_->send_some(pieces);
  }
  Result<std::size_t> receive_some(std::span<const iovec> pieces) override {
    return connection_->receive_some(pieces);
  }
  void add_to(WaitList& waits, Interest interest) const override { connection_->add_to(waits, interest); }
  bool is_broken() override { return connection_->is_broken(); }
  void finish_sending() override { connection_->finish_sending(); }
  bool is_delivered() const override { return connection_->is_delivered(); }
  void close() override { connection_->close(); }
  void reset() override { connection_->reset(); }
  Result<> check_peer() const override {
    return {};
  }  // it has no certificate: with TLS there is no such link

 private:
  const std::unique_ptr<UcxConnection> connection_;
};

}  // namespace muster::collective
