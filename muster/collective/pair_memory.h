// Shared memory for messages between two ranks of one host.
//
// Each ordered pair has a ring, which its sender makes in its part of the room with its first message: memory
// comes with use. Where its rings are stands in a table that each sender makes there likewise. Part of every
// group's memory is only a seat for each rank, with the place of its table and two bells, one for each
// direction: a rank that sleeps says so, and who has something for it rings.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "muster/collective/shared_arena.h"
#include "muster/collective/shared_reason.h"

namespace muster::collective {

struct Bell {
  alignas(128) std::atomic<std::uint32_t> rung;
  std::atomic<std::uint32_t> sleepers;  // threads of this rank
};

// Whether a rank has stopped to send and receive, and who said so.
enum class Left : std::uint32_t { no, by_itself, lost };

struct Seat {
  Bell receiving;                                // rung when there is something to read
  Bell sending;                                  // rung when there is room again
  alignas(128) std::atomic<std::uint32_t> left;  // a Left
  std::atomic<Offset> rings;                     // places of rings, once there is one
};

// By local rank: the place of the ring to it, nowhere while there is none.
constexpr std::size_t ring_places_bytes(std::size_t local_ranks) {
  return local_ranks * sizeof(std::atomic<Offset>);
}

// A stream of bytes: how many were ever written and read. A message begins at a whole line, which holds its
// MessageBytes; the data follows.
struct Ring {
  static constexpr std::size_t line_size_bytes = 64;
  static constexpr std::size_t capacity_bytes = 512 << 10;
  static constexpr std::size_t at_data = 4096;
  static constexpr std::size_t size_bytes = at_data + capacity_bytes;

  alignas(128) std::atomic<std::uint64_t> written;  // by the sender
  alignas(128) std::atomic<std::uint64_t> read;     // by the receiver
  // How long the receiver took to copy a message that the sender wanted timed.
  std::atomic<std::uint64_t> timed_number;
  std::atomic<std::uint64_t> timed_ns;

  std::byte* at(std::uint64_t position) {
    return reinterpret_cast<std::byte*>(this) + at_data + position % capacity_bytes;
  }
};

class PairMemory {
 public:
  PairMemory(std::byte* area, std::size_t local_ranks) : area_(area), local_ranks_(local_ranks) {}
  static std::size_t size_bytes(std::size_t local_ranks);
  // By the rank that makes the group's memory, before others open it.
  void lay_out() const;

  // Why messages have ended: as soon as a rank has begun to say so, they have.
  SharedReason& reason() const;
  Seat& seat(std::uint32_t local_rank) const;

 private:
  struct Header;
  Header& header() const;

  std::byte* area_;
  std::size_t local_ranks_;
};

}  // namespace muster::collective
