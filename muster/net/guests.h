// Who has connected and has not yet proved that it belongs here. A listener lets anybody come so far, so
// everything about a guest is limited: how many there are, how long each may stay, what each may send, and
// what all of them together make us hold.
//
// The rules alone, without sockets: the event loop's listener and the meeting of the ranks both follow them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "muster/base/base.h"

namespace muster::net {

struct GuestLimits {
  std::size_t count = 1024;
  Duration time = std::chrono::seconds(5);      // from coming to being admitted
  std::uint64_t payload_size_bytes = 64 << 10;  // of one frame of a guest
  std::size_t held_size_bytes = 4 << 20;        // of what all of them have sent and that is not yet a frame
  std::size_t unread_size_bytes = 16 << 20;     // of what all of them were answered and have not read
};

class Guests {
 public:
  using Id = std::uint64_t;
  struct Guest {
    std::string ip;
    TimePoint deadline;
    std::size_t held_size_bytes = 0;
    std::size_t unread_size_bytes = 0;
  };

  explicit Guests(GuestLimits limits) : limits_(limits) {}

  // One more. Ids grow. Returns who has to go for it, if somebody has: the oldest, since who belongs here
  // proves it at once; of the address that it comes from, where most are from there, so that one host that
  // floods us drives out nobody else.
  std::optional<Id> arrive(Id id, const std::string& ip, TimePoint now);
  // `id` makes us hold so many bytes. Returns who has to go for it, if somebody has: who holds most; of
  // several, the oldest.
  std::optional<Id> hold(Id id, std::size_t size_bytes);
  // The same, of answers to `id`.
  std::optional<Id> leave_unread(Id id, std::size_t size_bytes);
  // It is admitted or gone. An unknown id changes nothing.
  void leave(Id id);

  std::optional<Id> oldest() const;
  std::vector<Id> overdue(TimePoint now) const;
  // Of the next that will be overdue.
  TimePoint deadline() const;
  std::size_t count() const { return guests_.size(); }
  const GuestLimits& limits() const { return limits_; }

 private:
  std::optional<Id> charge(Id id, std::size_t size_bytes, std::size_t Guest::*account, std::size_t& sum,
                           std::size_t limit);

  GuestLimits limits_;
  std::map<Id, Guest> guests_;  // in the order in which they came
  std::unordered_map<std::string, std::size_t> counts_;
  std::size_t held_size_bytes_ = 0;
  std::size_t unread_size_bytes_ = 0;
};

// How often a line that guests can provoke is written: a few at once, then no more for a while.
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
