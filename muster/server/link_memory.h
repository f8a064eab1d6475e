// Link memory: the memory that a worker shares with one parameter server of its host, and what travels
// through it. Private to server.
//
// A server offers it where its connection is not encrypted; the worker makes the memory with its first large
// batch, and uses it once the server has it. Whatever finds no room goes through the socket.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "muster/server/rows_ahead.h"
#include "muster/server/shared_batches.h"
#include "muster/server/wire.h"

namespace muster::server {

class LinkMemory {
 public:
  // Sends a frame through the socket; job and generation are the link's owner's.
  using Send = std::function<void(FrameType type, std::span<const std::byte> payload)>;

  // What a server says; whether it was about the memory. Batches of fewer bytes, as their answers, go through
  // the socket; nothing: all of them.
  Result<bool> hear(const net::Frame& frame, std::optional<std::size_t> least_bytes);
  // A new generation: answers that are on their way are void, and the memory with them.
  void renew() { shared_.reset(); }
  // The connection has ended.
  void close();

  // What to send instead of this batch, for which the memory may first have to be made; nothing: the batch
  // itself. `answer_bytes` is of pulls, as the serial.
  struct Outgoing {
    std::span<const std::byte> batch = {};
    std::uint64_t answer_bytes = 0;
    std::uint32_t serial = 0;
  };
  std::optional<SharedMessage> put(const Outgoing& outgoing, const Send& send);
  // Rows that have come, wherever they lie. A place is free again once they are forgotten.
  Result<Rows> rows_of(net::Frame frame);
  // How many lay in memory until now.
  std::uint64_t batches() const { return batches_; }

 private:
  struct Shared;
  void make(const Outgoing& outgoing, const Send& send);
  void do_without(const Error& error);
  Result<Batch> take(const net::Frame& frame);
  // The answer to that pull has come through the socket.
  void answered(std::uint32_t serial);

  std::size_t least_bytes_ = 0;
  std::uint64_t batches_ = 0;
  bool is_told_ = false;  // that there is no memory
  std::string name_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace muster::server
