// Stream of bytes over a port of UCX: they are copied into a ring, go as numbered messages, and are put in
// order again. The other side tells how many of them it has taken, so that no side holds more than a ring's
// worth.
//
// Threads: one at a time.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/ucx_port.h"

namespace muster::collective {

// A place in pieces of memory, from the first byte on.
class PieceCursor {
 public:
  explicit PieceCursor(std::span<const iovec> pieces);
  std::size_t left() const { return left_; }
  // As many bytes as there are in both; how many.
  std::size_t read(std::span<std::byte> to);
  std::size_t write(std::span<const std::byte> from);

 private:
  template <class Copy>
  std::size_t walk(std::size_t size_bytes, const Copy& copy);

  std::span<const iovec> pieces_;
  std::size_t offset_ = 0;  // in the first of them
  std::size_t left_ = 0;
};

class UcxStream final : private UcxReceiver {
 public:
  // The library is borrowed.
  static Result<std::unique_ptr<UcxStream>> open(const UcxLibrary& library);
  ~UcxStream() override;

  const std::vector<std::byte>& address() const { return port_->address(); }
  Result<> connect(std::span<const std::byte> address);
  bool is_connected() const { return is_connected_; }
  bool is_heard() const { return is_heard_; }  // the other side
  // Why nothing moves any more.
  const std::optional<Error>& failure() const { return port_->failure(); }

  // As many bytes as there is room for, or have come.
  std::size_t send_some(std::span<const iovec> pieces);
  std::size_t receive_some(std::span<const iovec> pieces);
  // Whether that would move something.
  bool can_send() const { return ring_size_bytes - (ring_end_ - ring_begin_) >= message_limit_bytes; }
  bool can_receive() const { return !held_.empty(); }
  // Messages in all.
  std::uint64_t sent_messages() const { return next_number_; }
  std::uint64_t received_messages() const { return received_; }

  // Goes on without waiting; whether something moved.
  bool progress();
  // That, and with having all sent bytes leave this process; whether they have.
  bool settle();
  // Whether both sides have heard of each other. Before, nothing is sent: UCX 1.13 ends this process when the
  // other one dies while they connect and something waits to be sent.
  bool is_open() const { return is_heard_ && is_connected_ && (is_open_ || !credit_.is_under_way); }
  // What to wait for, as UcxPort has it.
  bool arm() { return port_->arm(); }
  int fd() const { return port_->fd(); }

 private:
  static constexpr std::size_t ring_size_bytes = std::size_t{1} << 20;
  static constexpr std::size_t message_limit_bytes = 60 << 10;
  // A message counts as at least so many, as it does in the queues of UCX's shared memory.
  static constexpr std::size_t part_bytes = 8 << 10;
  // After so much the other side is told that it was taken.
  static constexpr std::size_t credited_bytes = 60 << 10;
  static constexpr std::uint64_t credited_messages = 6;

  struct Outgoing {
    UcxMessage message;
    std::size_t end = 0;  // in the ring
  };
  struct Held {  // of a message that has come: what was not taken of it
    std::span<const std::byte> rest;
    std::size_t size_bytes = 0;
    const std::byte* staying = nullptr;  // in UCX's memory
    std::vector<std::byte> copied = {};  // else
  };
  UcxStream() : ring_(new std::byte[ring_size_bytes]) {}
  std::size_t append(PieceCursor& pieces);
  void post();
  void forget_taken();
  bool take_data(std::uint64_t number, std::span<const std::byte> bytes, bool may_stay) override;
  void take_credit(std::uint64_t number) override;
  bool take_next(std::span<const std::byte> bytes, bool may_stay);
  void take_held();
  void count_taken(std::size_t size_bytes);
  void send_credit();
  static Held hold(std::span<const std::byte> bytes, std::size_t taken_bytes, bool stays);

  std::unique_ptr<std::byte[]> ring_;
  std::deque<Outgoing> outgoing_;  // from the first that is not known to be taken
  std::size_t ring_begin_ = 0;     // positions since the beginning
  std::size_t ring_end_ = 0;
  std::uint64_t next_number_ = 0;
  std::uint64_t first_number_ = 0;  // in outgoing_
  std::uint64_t posted_ = 0;
  std::uint64_t acknowledged_ = 0;  // by the other side
  bool is_connected_ = false;
  bool is_heard_ = false;
  bool is_open_ = false;
  bool needs_flush_ = false;
  UcxMessage flush_;

  PieceCursor* target_ = nullptr;  // while receive_some is at work
  std::deque<Held> held_;
  std::map<std::uint64_t, Held> early_;  // which overtook others
  std::uint64_t received_ = 0;
  std::uint64_t taken_ = 0;  // by the caller
  std::uint64_t credited_ = 0;
  std::size_t uncredited_bytes_ = 0;
  UcxMessage credit_;

  std::unique_ptr<UcxPort> port_;  // goes first: it uses the others
};

}  // namespace muster::collective
