// What the files of net/loop* share; nobody else includes it.
#pragma once

#include <asio.hpp>
#include <list>

#include "muster/net/loop.h"
#include "muster/net/process_descriptor.h"

namespace muster::net {

class Loop::Implementation {
 public:
  struct WatchedProcess {
    ProcessDescriptor fd;
    asio::posix::stream_descriptor watched;
    std::function<void()> act;
  };

  asio::io_context context{1};
  asio::steady_timer timer{context};
  std::list<WatchedProcess> processes;
};

// A socket of Asio whose descriptor is closed in forked children.
class LoopSocket {
 public:
  LoopSocket(asio::io_context& context, int fd, int family);
  ~LoopSocket() { close(); }
  LoopSocket(const LoopSocket&) = delete;
  LoopSocket& operator=(const LoopSocket&) = delete;

  void close();
  asio::ip::tcp::socket socket;

 private:
  ProcessDescriptor fd_;
};

class Connection::Implementation : public std::enable_shared_from_this<Connection::Implementation> {
 public:
  Implementation(Loop& loop, int fd, const Address& peer, int family, ConnectionLimits limits);

  void set_events(ConnectionEvents events);
  void connect(const SocketAddress& address);
  void start();  // reading, on an open connection
  void send(std::shared_ptr<const std::vector<std::byte>> frame);
  void finish();
  void abandon();
  void leave_to_itself();  // the owner is gone; what it finished is still sent
  const Address& peer() const { return peer_; }
  void fail_later(Error error);

 private:
  void read();
  void deliver(std::size_t size);
  void write();
  void close(const Error& error);
  void shut_down();

  static constexpr std::size_t read_size_bytes = 64 << 10;
  enum class State { opening, open, finishing, closed };

  LoopSocket socket_;
  Address peer_;
  ConnectionLimits limits_;
  std::shared_ptr<ConnectionEvents> events_ = std::make_shared<ConnectionEvents>();
  State state_ = State::opening;
  bool reading_ = false;
  FrameDecoder decoder_;
  std::vector<std::byte> buffer_;
  std::list<std::shared_ptr<const std::vector<std::byte>>> unsent_;
  std::size_t unsent_size_bytes_ = 0;
  bool writing_ = false;
  asio::steady_timer finish_timer_;
};

}  // namespace muster::net
