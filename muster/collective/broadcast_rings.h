// Broadcasts among the ranks of one host whose root does not wait for the others.
//
// Each root has a ring, which it makes in its part of the room with its first broadcast. What it writes there
// stays until every other rank of the host has read it, so a root may be ahead of them by as much as its ring
// holds. An entry begins at a whole line, with the call; the bytes follow from the next line on.
//
// No ranks meet here, so none compares what all ranks call. A rank that waits for long does that: it looks
// at what the others are in, and at what lies in the rings that it has not read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/call.h"
#include "muster/collective/local_group.h"
#include "muster/collective/shared_arena.h"
#include "muster/collective/waiting.h"
#include "muster/net/net.h"

namespace muster::collective {

class BroadcastRings {
 public:
  // Larger ones are met for, in chunks.
  static constexpr std::size_t size_limit_bytes = 128 << 10;

  // `group` is borrowed.
  explicit BroadcastRings(LocalGroup& group);

  using Deadline = std::function<TimePoint()>;  // asked for only where a wait is long
  // On the root, whose place `own` is.
  Result<> give(const std::byte* data, const Call& call, const Deadline& deadline);
  // On the others.
  Result<> take(std::uint32_t root_place, std::byte* data, const Call& call, const Deadline& deadline);

  // Whether the root has given it already: it may have left since.
  bool has(std::uint32_t root_place, const Call& call);
  // What does not match: `call`, in which this rank waits, and what another rank of the host has called.
  Result<> check(const Call& call);
  // The same for any rank of the host. Only while none of them reads a ring: in the completion of a sync.
  Result<> check_all();
  // For whom this rank waits here. Any thread.
  std::vector<std::uint32_t> missing_ranks() const;

 private:
  struct Ring;
  struct Way {  // from a root
    net::Mapping mapping;
    Ring* ring = nullptr;
    std::uint64_t position = 0;  // up to which this rank has read it
  };

  std::size_t data_begin() const;
  std::size_t ring_bytes() const;
  std::byte* at(Ring& ring, std::uint64_t position) const;
  Result<> make_ring();
  Result<Ring*> reach(std::uint32_t root_place);
  std::uint64_t slowest() const;
  Result<> reserve(std::size_t size_bytes, const Call& call, const Deadline& deadline);
  void write(const std::byte* bytes, std::size_t size_bytes);
  void publish();
  void advance(Way& way, std::uint64_t to);
  Result<Call> head_at(Ring& ring, std::uint64_t position) const;
  std::optional<Call> unread(std::uint32_t reader, std::uint32_t root);
  Result<> check_unread(std::uint32_t reader, const Call& call);
  template <class Ready>
  Result<> await(LocalGroup::RingBell& bell, Ready&& ready, const Call& call, const Deadline& deadline);

  LocalGroup& group_;
  ShortWait short_wait_;
  std::vector<Way> ways_;            // by local rank
  std::atomic<Ring*> own_{nullptr};  // set by the first broadcast from here
  std::uint64_t written_ = 0;        // to it
  std::uint64_t free_until_ = 0;     // so far it may be written without looking at what was read
  static constexpr std::uint32_t no_root = ~std::uint32_t{0};
  std::atomic<std::uint32_t> awaited_root_{no_root};
  std::atomic<bool> awaits_room_{false};
};

}  // namespace muster::collective
