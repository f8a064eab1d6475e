// Frames between this rank and those ranks of other hosts with which it has a lane (layout.h), all of them at
// once: what is queued to be sent and what is due to arrive make progress together, so that no order of calls
// can block.
//
// Byte by byte: docs/formats/collective.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/call.h"
#include "muster/collective/copies.h"
#include "muster/collective/frame_stream.h"
#include "muster/collective/frames.h"
#include "muster/collective/link.h"
#include "muster/collective/reconnect_acceptor.h"
#include "muster/collective/waiting.h"
#include "muster/net/net.h"

namespace muster::collective {

// A connection that a rendezvous made.
struct Connected {
  std::uint32_t rank;
  std::unique_ptr<Link> link;
};

// What is wrong with one of the links.
struct LinkError {
  Error error;
  std::optional<std::uint32_t> lost_rank = {};  // whose connection is gone for good
};

class Exchange {
 public:
  // The acceptor is borrowed; null where no rank is remote.
  Exchange(std::uint32_t rank, FrameOrigin origin, std::vector<Connected> connections,
           ReconnectAcceptor* acceptor);

  bool empty() const { return peers_.empty(); }

  // Tells every peer what this rank calls and demands the same call from it, before its data.
  void announce(const Call& call);
  // Queue one piece of data to or from a peer, which may be empty. What is sent must stay as it is until
  // `settle` returns, but where a frame of that peer is due in a later `run`: once that has come.
  void send(std::size_t index, std::span<const std::byte> payload);
  void receive(std::size_t index, std::span<std::byte> payload);
  // Sends and receives all that is queued, and makes again the connections that break meanwhile.
  Result<> run(const net::Wait& wait);
  // The end of the call: nothing that was queued is needed any more.
  Result<> settle(const net::Wait& wait);
  // Between calls, on any thread: serves the acceptor and goes on, without waiting, with connections that are
  // reset, or that another rank found broken, and with what it has not got of the last call. Whether there
  // may be more to do. A `run` under way does that itself.
  Result<bool, LinkError> attend();
  // The connections, to be told when one is reset. Any thread.
  void watch(WaitList& waits);
  // A call has failed: what it borrowed is not read any more. Any thread may call it.
  void forget();

  // Tells all peers that the group has ended, whatever they wait for. Any thread.
  void reset();
  // Leaves, which disturbs no rank that needs nothing more of this one. Any thread.
  void close();
  // Whether the certificates of all peers are still good. Any thread.
  Result<> check_peers();

 private:
  struct Peer {
    Peer(std::uint32_t rank, std::unique_ptr<Link> link, ReconnectAcceptor& acceptor)
        : stream(rank, Purpose::calls, std::move(link), acceptor) {}
    FrameStream stream;
    FrameList incoming;
    CallBytes call{};
    std::size_t waits_at = 0;  // its place in waits_
    TakenBytes taken{};        // what this side tells the other at the end of a call
    TakenBytes heard{};        // and the other way
  };
  Result<> run_locked(const net::Wait& wait);
  void queue(Peer& peer, FrameType type, std::span<const std::byte> payload);
  Result<bool> advance(Peer& peer);
  Result<bool> advance_receiving(Peer& peer);
  Result<bool> mend(Peer& peer);
  Result<> check_piece(Peer& peer, std::size_t piece);
  Result<> check_content(const Peer& peer, std::size_t frame) const;
  Result<> check_header(const Peer& peer, std::size_t frame, const net::FrameHeader& header) const;
  bool done() const;
  Result<> wait_for_progress(const net::Wait& wait, TimePoint start);
  Result<net::Readiness> wait_for_all(const net::Wait& wait);
  void break_off_reset();
  void look_for_resets();
  std::string missing_ranks() const;

  std::uint32_t rank_;
  FrameOrigin origin_;
  std::mutex mutex_;        // guards what follows, but for what any thread may call
  bool forgotten_ = false;  // no peer is attended any more
  std::deque<Peer> peers_;
  Copies copies_;
  ReconnectAcceptor* acceptor_;
  Call call_;
  CallBytes call_bytes_{};
  WaitList waits_;
  std::optional<LookAgain> look_again_;
};

}  // namespace muster::collective
