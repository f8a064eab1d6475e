// The ranks of one host and the memory that they share.
//
// All of them step together: `sync` returns when every local rank has called it, and the last one to arrive
// runs a completion before the others go on. The k-th sync orders the memory, so that the areas need no
// locks:
//   - a small slot, and a small raw value of another host, is written before a sync and read only by its
//     completion; the small result is written by the completion and read after it, until the reader's next
//     sync;
//   - slot(k mod 2) and raw(k mod 2) are written before sync k and read after it, until the reader's sync
//   k+1;
//   - result(k mod 2) is written after sync k and read after sync k+1, until the reader's sync k+2;
//   - where a call's data lies is told before the call's first sync and read after it, until the last one.
// Where hosts differ in how many ranks they have, there is one more sync between writing a slot and the one
// that counts here: after it, some ranks send what others have written to slots. Their turns are counted
// instead of syncs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/call.h"
#include "muster/collective/core_sharing.h"
#include "muster/collective/kernels.h"
#include "muster/collective/pair_memory.h"
#include "muster/collective/shared_arena.h"
#include "muster/collective/shared_call.h"
#include "muster/collective/shared_reason.h"
#include "muster/collective/waiting.h"
#include "muster/net/net.h"

namespace muster::collective {

// The part of the shape that all local ranks know before they share anything.
struct LocalShape {
  std::vector<std::uint32_t> ranks;  // of the host, ascending
  std::uint32_t local_rank = 0;      // place of this process in `ranks`
  std::size_t small_size_bytes = 0;  // of a small slot
  std::size_t chunk_size_bytes = 0;  // of a slot
  std::uint32_t remote_ranks = 0;    // ranks of other hosts, whose values come here once for all
  std::size_t raw_size_bytes = 0;    // of what each of them has for this host
};

// Where a rank's data of a call lies in shared memory.
struct Offsets {
  Offset in = nowhere;
  Offset out = nowhere;
};

// Where the areas begin in the segment.
struct LocalLayout {
  explicit LocalLayout(const LocalShape& shape);
  std::size_t lines, pairs, small_slots, small_result, small_raws, slots, results, raws, end;
};

class LocalGroup {
 public:
  // Ranks that wait for a ring of broadcasts sleep here; who wakes them clears the mark.
  struct RingBell {
    alignas(2 * line_size_bytes) std::atomic<std::uint32_t> rung;
    std::atomic<std::uint32_t> sleeping;
  };

  // The first local rank makes the memory, the others open it by the descriptor they were sent.
  // `clock` is borrowed.
  static Result<LocalGroup> create(LocalShape shape, const Clock& clock);
  static Result<LocalGroup> open(LocalShape shape, net::ProcessDescriptor fd, const Clock& clock);

  LocalGroup(LocalGroup&&) = default;

  std::uint32_t size() const { return static_cast<std::uint32_t>(shape_.ranks.size()); }
  std::uint32_t local_rank() const { return shape_.local_rank; }
  const std::vector<std::uint32_t>& ranks() const { return shape_.ranks; }
  bool has(std::uint32_t rank) const { return place_of(rank) < size(); }
  // Of a rank among the local ones; size() for a rank of another host.
  std::uint32_t place_of(std::uint32_t rank) const;
  const Clock& clock() const { return clock_; }
  const net::Segment& segment() const { return *segment_; }
  // Memory of this rank and of the others, for what no slot has to carry.
  SharedArena& arena() const { return *arena_; }

  PairMemory pairs() const { return {segment_->data() + layout_.pairs, shape_.ranks.size()}; }
  std::byte* small_slot(std::uint32_t local_rank) const;
  std::byte* small_result() const;
  // Of a rank of another host, as Layout::remote_index_of counts them.
  std::byte* small_raw(std::uint32_t remote_index) const;
  // By the number of a sync, or of a turn; see above.
  std::byte* slot(std::uint32_t local_rank, std::uint64_t turn) const;
  std::byte* result(std::uint64_t turn) const;
  std::byte* raw(std::uint32_t remote_index, std::uint64_t turn) const;
  // How many syncs this rank has finished.
  std::uint64_t syncs() const { return syncs_; }

  // Tells what this rank calls, and where its data lies; the next sync compares the calls and fails when they
  // differ.
  void announce(const Call& call, const Offsets& offsets);
  // Where the others find this rank's process: told before its first sync.
  struct Process {
    std::int32_t id = 0;
    std::uint64_t address = 0;  // of its mark
    std::uint64_t mark = 0;
  };
  void introduce(const Process& process);
  const Process& process_of(std::uint32_t local_rank) const;
  // A rank could not read what another has: told before a sync, and known to all of them after it, for good.
  void refuse_reading();
  bool refuses_reading() const;

  // What a local rank has announced.
  const Offsets& offsets(std::uint32_t local_rank) const;
  // The same of its call, whatever it is at.
  std::optional<Call> current_call(std::uint32_t local_rank) const;

  // Looks for calls that do not match where no ranks meet: of the ranks that wait in a sync that has not
  // ended, or of them all, at its end. Its error is told.
  struct Checks {
    std::function<Result<>(const Call&)> own;
    std::function<Result<>()> all;
  };
  // Waits for all local ranks; the last arriver runs `complete()` while the others wait. `deadline()` is
  // asked for only when the wait is long.
  template <class Complete, class Deadline>
  Result<> sync(const Call& call, const Checks& checks, Complete&& complete, Deadline&& deadline) {
    if (arrive()) {
      if (call.number != compared_) {
        compared_ = call.number;
        MUSTER_TRY_VOID(compare_calls(call, checks));
      }
      complete();
      release();
      return {};
    }
    compared_ = call.number;
    if (released_soon()) return {};
    return wait_long(call, checks, deadline());
  }

  // That this rank has ended a call for which the ranks do not meet; the next sync compares these, too.
  void note_unmet(const Call& call);
  // Where the ring is that a local rank broadcasts through; nowhere before its first broadcast.
  void tell_ring(Offset offset);
  Offset ring_of(std::uint32_t local_rank) const;
  RingBell& ring_news() const;  // rung when there is something to read
  RingBell& ring_room() const;  // when there is room again

  // Those that have not come to the sync to which this rank has come. Any thread.
  std::vector<std::uint32_t> missing_ranks() const;
  // Of a rank that has waited in vain for a while: see core_sharing.h. Any thread.
  void look_at_cores() const;

  // Ends the group for all local ranks and wakes those that wait. The first reason stays. Any thread.
  void abort(const Error& reason);
  bool aborted() const;
  Error abort_reason() const;
  // The reason. A rank that has begun to give it has ended the group, whether it comes to waking the others
  // or not.
  SharedReason& reason() const;

 private:
  friend LocalLayout;
  struct Header;
  struct RankLine;
  LocalGroup(LocalShape shape, net::Segment segment, const Clock& clock);

  Header& header() const;
  RankLine& line(std::uint32_t local_rank) const;
  std::uint32_t generation_released() const { return static_cast<std::uint32_t>(2 * syncs_); }
  bool is_flagged() const;
  bool arrive();
  void release();
  bool released() const;
  bool released_soon() const;
  Result<> wait_long(const Call& call, const Checks& checks, TimePoint deadline);
  Result<> compare_calls(const Call& call, const Checks& checks) const;

  const Clock& clock_;
  LocalShape shape_;
  LocalLayout layout_;
  std::shared_ptr<const net::Segment> segment_;
  std::shared_ptr<SharedArena> arena_;
  std::uint64_t syncs_ = 0;
  std::uint64_t compared_ = 0;  // number of the last call that was compared
  ShortWait short_wait_;
  std::unique_ptr<CoreSharing> core_sharing_;
};

}  // namespace muster::collective
