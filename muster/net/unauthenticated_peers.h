// Unauthenticated peers: connections that have not yet proved that they belong here. A listener accepts any
// peer so far, so everything about such a peer is limited: how many there are, how long each may stay, what
// each may send, and what all of them together make us hold.
//
// The rules alone, without sockets: the event loop's listener and the rendezvous of the ranks both follow
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "muster/base/base.h"

namespace muster::net {

// Peers that were rejected for the same reason.
struct RejectedPeer {
  std::string ip;
  std::string reason;  // names no port: that is another one each time
  std::uint64_t count = 0;
  friend bool operator==(const RejectedPeer&, const RejectedPeer&) = default;
};

struct UnauthenticatedLimits {
  std::size_t count = 1024;
  Duration time = std::chrono::seconds(5);              // from coming to being admitted
  Duration handshake_time = std::chrono::seconds(3);    // to the end of the handshake, where there is one
  Duration time_least = std::chrono::milliseconds(50);  // where no descriptor is free
  std::uint64_t payload_size_bytes = 64 << 10;          // of one frame of an unauthenticated peer
  std::size_t held_size_bytes = 4 << 20;     // of what all of them have sent and that is not yet a frame
  std::size_t unread_size_bytes = 16 << 20;  // of what all of them were answered and have not read
};

class UnauthenticatedPeers {
 public:
  using Id = std::uint64_t;
  struct UnauthenticatedPeer {
    std::string ip;
    TimePoint deadline;
    TimePoint came;
    std::size_t held_size_bytes = 0;
    std::size_t unread_size_bytes = 0;
  };

  explicit UnauthenticatedPeers(UnauthenticatedLimits limits) : limits_(limits) {}

  // One more. Ids grow. Returns the peer that has to go for it, if any: the oldest, since a peer that belongs
  // here proves it at once; of the address that it comes from, where most are from there, so that one host
  // that floods us drives out no other.
  std::optional<Id> arrive(Id id, const std::string& ip, TimePoint now);
  // It begins a handshake as it comes, and has less time until that is through.
  void expect_handshake(Id id, TimePoint now);
  void secured(Id id);
  // `id` makes us hold so many bytes. Returns the peer that has to go for it, if any: the one that holds
  // most; of several, the oldest.
  std::optional<Id> hold(Id id, std::size_t size_bytes);
  // The same, of answers to `id`.
  std::optional<Id> leave_unread(Id id, std::size_t size_bytes);
  // It is admitted or gone. An unknown id changes nothing.
  void leave(Id id);

  // The peer that goes when room is needed: the oldest, of the address where most are from if there is one.
  // None, while it came a moment ago: a peer that belongs here needs that much to prove it.
  std::optional<Id> first_to_go(TimePoint now) const;
  std::vector<Id> overdue(TimePoint now) const;
  // Of the next that will be overdue.
  TimePoint deadline() const;
  std::size_t count() const { return unauthenticated_.size(); }
  const UnauthenticatedLimits& limits() const { return limits_; }

 private:
  std::optional<Id> charge(Id id, std::size_t size_bytes, std::size_t UnauthenticatedPeer::*account,
                           std::size_t& sum, std::size_t limit);
  void set_deadline(Id id, UnauthenticatedPeer& peer, TimePoint deadline);
  Id oldest_of(const std::string& ip) const;

  UnauthenticatedLimits limits_;
  std::map<Id, UnauthenticatedPeer> unauthenticated_;  // in the order in which they came
  std::set<std::pair<TimePoint, Id>> deadlines_;
  std::unordered_map<std::string, std::size_t> counts_;
  std::size_t held_size_bytes_ = 0;
  std::size_t unread_size_bytes_ = 0;
};

// How many unauthenticated peers a listener has places for. All listeners of a process together have half of
// the descriptors that are left for unauthorized peers when those that belong here have theirs; each takes
// half of what the earlier ones left of it, and gives it back when it is destroyed. Threads: any.
class UnauthenticatedSlots {
 public:
  // `members`: descriptors that the members of the job will need.
  UnauthenticatedSlots(std::size_t most, std::size_t members);
  UnauthenticatedSlots(UnauthenticatedSlots&& other) noexcept : count_(std::exchange(other.count_, 0)) {}
  UnauthenticatedSlots& operator=(UnauthenticatedSlots&&) = delete;
  ~UnauthenticatedSlots();

  std::size_t count() const { return count_; }

 private:
  std::size_t count_;
};

inline UnauthenticatedLimits with_places(UnauthenticatedLimits limits, const UnauthenticatedSlots& places) {
  limits.count = places.count();
  return limits;
}

// How often a line that unauthenticated peers can provoke is written: a few at once, then no more for a
// while.
class LineLimit {
 public:
  explicit LineLimit(int lines = 5, Duration period = std::chrono::seconds(10))
      : lines_(lines), period_(period) {}

  // Nothing: leave this line out. Else what to put behind it: how many were left out before, or "".
  std::optional<std::string> take(TimePoint now);

 private:
  int lines_;
  Duration period_;
  std::optional<TimePoint> begin_ = {};  // of the period
  int written_ = 0;                      // in it
  std::uint64_t left_out_ = 0;
};

}  // namespace muster::net
