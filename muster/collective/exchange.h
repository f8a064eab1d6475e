// Frames between this rank and the ranks of other hosts, all peers at once: what is queued to be sent and
// what is due to arrive make progress together, so that no order of calls can block.
//
// Byte by byte: docs/formats/collective.md.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/call.h"
#include "muster/collective/frames.h"
#include "muster/net/net.h"

namespace muster::collective {

// The connection to one remote rank.
class Link {
 public:
  // `name` is how errors call the peer: "rank 2 (10.0.0.7:4000)".
  Link(std::uint32_t rank, std::string name, net::Socket socket)
      : rank_(rank), name_(std::move(name)), socket_(std::move(socket)) {}

  std::uint32_t rank() const { return rank_; }
  const std::string& name() const { return name_; }

 private:
  friend class Exchange;

  std::uint32_t rank_;
  std::string name_;
  net::Socket socket_;
  // At most a call and two pieces of data in each direction of one exchange.
  FrameList outgoing_;
  FrameList incoming_;
  CallBytes peer_call_{};
  std::optional<Error> send_failure_;
};

class Exchange {
 public:
  Exchange(std::uint32_t rank, FrameOrigin origin, std::vector<Link> links);

  bool empty() const { return links_.empty(); }
  std::size_t size() const { return links_.size(); }
  std::uint32_t rank_of(std::size_t index) const { return links_[index].rank(); }

  // Tells every remote rank what this rank calls and demands the same call from it, before its data.
  void announce(const Call& call);
  // Queue one piece of data to or from a peer. The bytes must stay as they are until `run` returns. Empty
  // pieces are not sent.
  void send(std::size_t index, std::span<const std::byte> payload);
  void receive(std::size_t index, std::span<std::byte> payload);
  // Sends and receives all that is queued.
  Result<> run(const net::Wait& wait);

  // Tells all peers that the group has ended, whatever they wait for. A rank that merely leaves closes its
  // connections instead, which disturbs nobody who needs nothing more of it. Any thread.
  void reset();

 private:
  void queue(Link& link, FrameType type, std::span<const std::byte> payload);
  Result<bool> advance(Link& link);
  Result<bool> advance_sending(Link& link);
  Result<bool> advance_receiving(Link& link);
  Result<> check_piece(Link& link, std::size_t piece);
  Result<> check_header(const Link& link, std::size_t frame, const net::FrameHeader& header) const;
  bool done() const;
  Result<> wait_for_progress(const net::Wait& wait, TimePoint start);
  Result<> check_resets() const;
  std::string missing_ranks() const;

  std::uint32_t rank_;
  FrameOrigin origin_;
  std::vector<Link> links_;
  Call call_;
  CallBytes call_bytes_{};
  std::vector<pollfd> polled_;
};

}  // namespace muster::collective
