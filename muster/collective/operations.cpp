// The operations: the same algorithm for every layout. docs/adr/0007-collectives.md, docs/adr/0019-lanes.md.
#include <algorithm>
#include <optional>

#include "muster/collective/group_communicator.h"

namespace muster::collective {
namespace {

// All of a range but the inner one, which lies in it.
void copy_around(Range inner, Range all, std::byte* to, const std::byte* from, Stores stores) {
  const std::size_t end = inner.begin + inner.size;
  copy(to + all.begin, from + all.begin, inner.begin - all.begin, stores);
  copy(to + end, from + end, all.begin + all.size - end, stores);
}

}  // namespace

// One chunk of an all_reduce: where it lies in the caller's buffers, and the turn of the shared memory that
// it has.
struct GroupCommunicator::Piece {
  const std::byte* in;
  std::byte* out;
  std::size_t begin;  // in the tensor
  std::size_t size_bytes;
  std::uint64_t turn;
};

// The number of the sync to come, or, where there may be two of them for one turn, of the turn.
std::uint64_t GroupCommunicator::next_turn() {
  if (!local_) return 0;
  return layout_.is_even() ? local_->syncs() + 1 : ++turns_;
}

Result<> GroupCommunicator::barrier(const Call& call) {
  MUSTER_TRY_VOID(share(call));
  MUSTER_TRY_VOID(exchange());
  return sync(call);
}

// ---- all_reduce -------------------------------------------------------------------------------------------

Result<> GroupCommunicator::all_reduce(const std::byte* in, std::byte* out, const Call& call) {
  if (call.count == 0) return barrier(call);
  if (!local_ && received_.empty()) received_.resize(layout_.remote_count() * received_stride_);
  const bool small = call.count * size_bytes(call.dtype) <= sizes_.small_size_bytes;
  return small ? reduce_small(in, out, call) : reduce_chunks(in, out, call);
}

std::byte* GroupCommunicator::remote_small_raw(std::uint32_t rank) {
  const std::uint32_t index = layout_.remote_index_of(rank);
  return local_ ? local_->small_raw(index) : received_.data() + index * received_stride_;
}

// Of this host's slices.
std::byte* GroupCommunicator::remote_raw(std::uint32_t rank, std::uint64_t turn) {
  const std::uint32_t index = layout_.remote_index_of(rank);
  return local_ ? local_->raw(index, turn) : received_.data() + index * received_stride_;
}

// The values of all ranks go whole to every host; there, the last rank to arrive combines them for all.
Result<> GroupCommunicator::reduce_small(const std::byte* in, std::byte* out, const Call& call) {
  const std::size_t bytes = call.count * size_bytes(call.dtype);
  for (std::uint32_t r = 0; r < size(); ++r)
    if (!layout_.is_local(r)) sources_[r] = remote_small_raw(r);
  sources_[rank()] = in;
  std::byte* result = out;
  if (local_) {
    for (std::uint32_t r = 0; r < local_->size(); ++r) sources_[local_->ranks()[r]] = local_->small_slot(r);
    copy(local_->small_slot(local_->local_rank()), in, bytes, Stores::cached);
    result = local_->small_result();
  }
  MUSTER_TRY_VOID(share(call));
  for (std::size_t i = 0; i < layout_.lanes().size(); ++i) {
    const Lane& lane = layout_.lanes()[i];
    for (std::uint32_t r = lane.ours.begin; r < lane.ours.end(); ++r)
      links_.send(i, {sources_[layout_.own_ranks()[r]], bytes});
    for (std::uint32_t r = lane.theirs.begin; r < lane.theirs.end(); ++r)
      links_.receive(i, {remote_small_raw(layout_.ranks_of(lane.host)[r]), bytes});
  }
  MUSTER_TRY_VOID(exchange());
  MUSTER_TRY_VOID(settle());  // the result, or the next call, may be written over what was sent
  MUSTER_TRY_VOID(sync(call, [&] {
    const Destination destination{.bytes = result, .stores = Stores::cached};
    combine({.sources = sources_,
             .destinations = {&destination, 1},
             .count = call.count,
             .dtype = call.dtype,
             .reduction = call.reduction});
  }));
  if (local_) copy(out, result, bytes, Stores::cached);
  return {};
}

// A pipeline of two stages: while a chunk's raw values travel to the hosts that own its slices, the results
// of the chunk before travel back. One exchange and one sync serve both.
Result<> GroupCommunicator::reduce_chunks(const std::byte* in, std::byte* out, const Call& call) {
  const std::size_t bytes = call.count * size_bytes(call.dtype);
  const Chunks chunks(bytes, sizes_.chunk_size_bytes);
  const Stores shared = store_choice_.next(bytes);
  const Stores own = chunks.count() > 1 ? Stores::streaming : Stores::cached;
  Duration busy{};
  std::optional<Piece> before;
  for (std::size_t i = 0; i <= chunks.count(); ++i) {
    std::optional<Piece> current;
    if (i < chunks.count()) {
      const Stopwatch watch(origin_.clock, busy);
      current = piece_of(in, out, chunks[i]);
      share_raw(*current, shared);
    }
    MUSTER_TRY_VOID(share(call));
    if (i == 0 && !layout_.is_even()) MUSTER_TRY_VOID(reach_all(bytes));
    if (current) {
      const Stopwatch watch(origin_.clock, busy);
      queue_raw(*current);
    }
    if (before) queue_results(*before);
    MUSTER_TRY_VOID(exchange());
    MUSTER_TRY_VOID(sync(call));
    if (i == 0 && layout_.is_even()) {
      MUSTER_TRY_VOID(reach_all(bytes));
      if (all_reached_ && layout_.has_one_host()) return reduce_in_place(piece_of(in, out, {0, bytes}), call);
    }
    const Stopwatch watch(origin_.clock, busy);
    if (before) collect_results(*before, own);
    if (current) reduce_own(*current, call, shared, own);
    before = current;
  }
  store_choice_.record(bytes, busy);
  return {};
}

// After a call's first sync: every rank learns the same, so all of them go the same way on.
Result<> GroupCommunicator::reach_all(std::size_t size_bytes) {
  if (!local_) return {};
  all_reached_ = true;
  result_is_wanted_ = !layout_.is_even();  // by those who send it
  SharedArena& arena = local_->arena();
  for (std::uint32_t r = 0; r < local_->size(); ++r) {
    const Offsets told = local_->offsets(r);
    all_reached_ = all_reached_ && told.in != nowhere && told.out != nowhere;
    reached_[r] = {};
    if (r == local_->local_rank()) continue;
    for (const Offset offset : {told.in, told.out})
      if (offset != nowhere) MUSTER_TRY_VOID(arena.reach(r, offset, size_bytes));
    if (told.in != nowhere) reached_[r].in = arena.at(r, told.in);
    if (told.out != nowhere) reached_[r].out = arena.at(r, told.out);
    result_is_wanted_ = result_is_wanted_ || told.out == nowhere;
  }
  return {};
}

// The owner of a slice reads it in the memory of all ranks and writes the result to all: no copies, and one
// more sync, however much it is.
Result<> GroupCommunicator::reduce_in_place(const Piece& whole, const Call& call) {
  const Stores stores = store_choice_in_place_.next(whole.size_bytes);
  Duration busy{};
  {
    const Stopwatch watch(origin_.clock, busy);
    reduce_own(whole, call, stores, stores);
  }
  store_choice_in_place_.record(whole.size_bytes, busy);
  return sync(call);
}

GroupCommunicator::Piece GroupCommunicator::piece_of(const std::byte* in, std::byte* out, Range range) {
  return {.in = in + range.begin,
          .out = out + range.begin,
          .begin = range.begin,
          .size_bytes = range.size,
          .turn = next_turn()};
}

Range GroupCommunicator::slices_of_host(const Piece& piece, std::uint32_t host) const {
  return slices_of(piece.size_bytes, layout_.positions_of(host), size());
}

Range GroupCommunicator::own_slice(const Piece& piece) const {
  return slices_of(piece.size_bytes, {.begin = layout_.position_of(rank()), .count = 1}, size());
}

// What neighbours combine, and where they may have to send it, all.
void GroupCommunicator::share_raw(const Piece& piece, Stores stores) {
  if (!local_ || own_offsets().in != nowhere) return;
  const Range wanted =
      layout_.is_even() ? slices_of_host(piece, layout_.own_host()) : Range{0, piece.size_bytes};
  copy_around(own_slice(piece), wanted, local_->slot(local_->local_rank(), piece.turn), piece.in, stores);
}

// Each host gets all ranks' values of the slices that its ranks own. What goes each way in a step is never
// nothing, so that each step shows that the other side has the last one's.
void GroupCommunicator::queue_raw(const Piece& piece) {
  const Range mine = slices_of_host(piece, layout_.own_host());
  for (std::size_t i = 0; i < layout_.lanes().size(); ++i) {
    const Lane& lane = layout_.lanes()[i];
    const Range theirs = slices_of_host(piece, lane.host);
    for (std::uint32_t r = lane.ours.begin; r < lane.ours.end(); ++r)
      links_.send(i, {local_raw(piece, r) + theirs.begin, theirs.size});
    for (std::uint32_t r = lane.theirs.begin; r < lane.theirs.end(); ++r)
      links_.receive(i, {remote_raw(layout_.ranks_of(lane.host)[r], piece.turn), mine.size});
  }
}

// Once to each host.
void GroupCommunicator::queue_results(const Piece& piece) {
  const auto slices = [&](std::uint32_t host, Places places) {
    const Places positions{.begin = layout_.positions_of(host).begin + places.begin, .count = places.count};
    return slices_of(piece.size_bytes, positions, size());
  };
  std::byte* const shared = local_ ? local_->result(piece.turn) : piece.out;
  for (std::size_t i = 0; i < layout_.lanes().size(); ++i) {
    const Lane& lane = layout_.lanes()[i];
    const Range mine = slices(layout_.own_host(), lane.ours), theirs = slices(lane.host, lane.theirs);
    const bool is_own = lane.ours.count == 1 && lane.ours.begin == layout_.place_of(rank());
    links_.send(i, {(is_own ? piece.out : shared) + mine.begin, mine.size});
    links_.receive(i, {shared + theirs.begin, theirs.size});
  }
}

void GroupCommunicator::reduce_own(const Piece& piece, const Call& call, Stores shared, Stores own) {
  const Range mine = own_slice(piece);
  if (mine.size == 0) return;
  const std::size_t in_host = mine.begin - slices_of_host(piece, layout_.own_host()).begin;
  for (std::uint32_t r = 0; r < size(); ++r)
    sources_[r] = layout_.is_local(r) ? local_raw(piece, layout_.place_of(r)) + mine.begin
                                      : remote_raw(r, piece.turn) + in_host;
  choose_destinations(piece, mine.begin, shared, own);
  combine({.sources = sources_,
           .destinations = destinations_,
           .count = mine.size / size_bytes(call.dtype),
           .dtype = call.dtype,
           .reduction = call.reduction});
}

const std::byte* GroupCommunicator::local_raw(const Piece& piece, std::uint32_t local_rank) const {
  if (local_rank == this->local_rank()) return piece.in;
  const std::byte* in = reached_[local_rank].in;
  return in != nullptr ? in + piece.begin : local_->slot(local_rank, piece.turn);
}

// Of the result of this rank's slice, which begins at `begin` in the piece.
void GroupCommunicator::choose_destinations(const Piece& piece, std::size_t begin, Stores shared,
                                            Stores own) {
  destinations_.assign({{.bytes = piece.out + begin, .stores = own}});
  if (!local_) return;
  if (result_is_wanted_)
    destinations_.push_back({.bytes = local_->result(piece.turn) + begin, .stores = shared});
  for (const Reached& peer : reached_)
    if (peer.out != nullptr)
      destinations_.push_back({.bytes = peer.out + piece.begin + begin, .stores = shared});
}

// Neighbours may have written their results here themselves; those of other hosts came to one of them.
void GroupCommunicator::collect_results(const Piece& piece, Stores stores) {
  if (!local_) return;
  const Range here =
      own_offsets().out == nowhere ? own_slice(piece) : slices_of_host(piece, layout_.own_host());
  copy_around(here, {0, piece.size_bytes}, piece.out, local_->result(piece.turn), stores);
}

// ---- broadcast --------------------------------------------------------------------------------------------

bool GroupCommunicator::runs_ahead(const Call& call) const {
  return call.kind == CallKind::broadcast && rings_ && layout_.has_one_host() && !origin_.roots_wait &&
         call.count > 0 && call.count <= BroadcastRings::size_limit_bytes;
}

Result<> GroupCommunicator::broadcast_ahead(std::byte* data, const Call& call) {
  const Result<> done = call.root == rank()
                            ? rings_->give(data, call, deadline_of_rings_)
                            : rings_->take(layout_.place_of(call.root), data, call, deadline_of_rings_);
  if (done) local_->note_unmet(call);
  return done;
}

bool GroupCommunicator::has_come(const Call& call) {
  return runs_ahead(call) && call.root != rank() && rings_->has(layout_.place_of(call.root), call);
}

// The root sends to every other host, or its neighbours do; on each host one rank has the bytes first.
Result<> GroupCommunicator::broadcast(std::byte* data, const Call& call) {
  if (runs_ahead(call)) return broadcast_ahead(data, call);
  if (!may_read_pieces(call.count)) return broadcast_through_slots(data, call);
  const std::span<const std::byte> sent(data, call.count);
  const std::vector<std::span<std::byte>> places(size(), {data, call.count});  // only the root's is used
  return move_pieces(
      {.in = {&sent, 1},
       .out = places,
       .size = [&](std::uint32_t from, auto) { return from == call.root ? call.count : std::size_t{0}; },
       .longest = call.count,
       .one_for_all = true},
      call, [&] { return broadcast_through_slots(data, call); });
}

Result<> GroupCommunicator::broadcast_through_slots(std::byte* data, const Call& call) {
  const Chunks chunks(call.count, sizes_.chunk_size_bytes);
  if (chunks.count() == 0) return barrier(call);
  const std::uint32_t root_host = layout_.host_of(call.root), root_place = layout_.place_of(call.root);
  const bool is_at_root = layout_.is_local(call.root);
  const std::uint32_t sharer =
      is_at_root ? call.root : layout_.ends_of_lane(root_host, root_place, layout_.own_host()).far;
  for (std::size_t c = 0; c < chunks.count(); ++c) {
    const auto [begin, bytes] = chunks[c];
    std::byte* const chunk = data + begin;
    const std::uint64_t turn = next_turn();
    const auto give = [&, bytes = bytes] {
      if (local_ && sharer == rank())
        copy(local_->slot(local_->local_rank(), turn), chunk, bytes, Stores::cached);
    };
    bool has_it = sharer == rank();
    const auto take = [&, bytes = bytes] {
      if (!has_it) copy(chunk, local_->slot(layout_.place_of(sharer), turn), bytes, Stores::cached);
      has_it = true;
    };
    const bool gives_first = is_at_root && !layout_.is_even();
    if (gives_first) give();
    MUSTER_TRY_VOID(share(call));
    for (std::size_t i = 0; i < layout_.lanes().size(); ++i) {
      const Lane& lane = layout_.lanes()[i];
      if (is_at_root && lane.ours.has(root_place)) {
        take();  // what is sent must stay as it is, and slots do not
        links_.send(i, {chunk, bytes});
      }
      if (lane.host == root_host && lane.theirs.has(root_place)) links_.receive(i, {chunk, bytes});
    }
    MUSTER_TRY_VOID(exchange());
    if (!gives_first) give();
    MUSTER_TRY_VOID(sync(call));
    take();
  }
  return {};
}

// ---- all_gather -------------------------------------------------------------------------------------------

Result<> GroupCommunicator::all_gather(const std::byte* in, std::byte* out, std::size_t each_bytes,
                                       const Call& call) {
  if (!may_read_pieces(each_bytes)) return gather_through_slots(in, out, each_bytes, call);
  const std::span<const std::byte> sent(in, each_bytes);
  std::vector<std::span<std::byte>> places;
  for (std::uint32_t from = 0; from < size(); ++from)
    places.emplace_back(out + from * each_bytes, each_bytes);
  return move_pieces({.in = {&sent, 1},
                      .out = places,
                      .size = [each_bytes](auto, auto) { return each_bytes; },
                      .longest = each_bytes,
                      .one_for_all = true},
                     call, [&] { return gather_through_slots(in, out, each_bytes, call); });
}

Result<> GroupCommunicator::gather_through_slots(const std::byte* in, std::byte* out, std::size_t each_bytes,
                                                 const Call& call) {
  const Chunks chunks(each_bytes, sizes_.gathered_size_bytes);
  if (chunks.count() == 0) return barrier(call);
  const std::size_t all_bytes = each_bytes * size();
  const Stores stores = store_choice_gathering_.next(all_bytes);
  Duration busy{};
  for (std::size_t c = 0; c < chunks.count(); ++c) {
    const auto [begin, bytes] = chunks[c];
    const std::uint64_t turn = next_turn();
    const auto give = [&, begin = begin, bytes = bytes] {
      if (local_) copy(local_->slot(local_->local_rank(), turn), in + begin, bytes, Stores::cached);
    };
    if (!layout_.is_even()) give();
    MUSTER_TRY_VOID(share(call));
    queue_gathering(chunks[c], in, out, each_bytes, turn);
    MUSTER_TRY_VOID(exchange());
    if (layout_.is_even()) give();
    MUSTER_TRY_VOID(sync(call));
    const Stopwatch watch(origin_.clock, busy, store_choice_gathering_.is_trying(all_bytes));
    std::byte* const own_place = out + rank() * each_bytes;
    if (own_place != in) copy(own_place + begin, in + begin, bytes, stores);
    if (local_) collect_gathering(chunks[c], out, each_bytes, turn, stores);
  }
  store_choice_gathering_.record(all_bytes, busy);
  return {};
}

void GroupCommunicator::queue_gathering(Range range, const std::byte* in, std::byte* out,
                                        std::size_t each_bytes, std::uint64_t turn) {
  for (std::size_t i = 0; i < layout_.lanes().size(); ++i) {
    const Lane& lane = layout_.lanes()[i];
    for (std::uint32_t r = lane.ours.begin; r < lane.ours.end(); ++r)
      links_.send(i, {r == local_rank() ? in + range.begin : local_->slot(r, turn), range.size});
    for (std::uint32_t r = lane.theirs.begin; r < lane.theirs.end(); ++r) {
      const std::uint32_t peer = layout_.ranks_of(lane.host)[r];
      links_.receive(i,
                     {local_ ? remote_raw(peer, turn) : out + peer * each_bytes + range.begin, range.size});
    }
  }
}

void GroupCommunicator::collect_gathering(Range range, std::byte* out, std::size_t each_bytes,
                                          std::uint64_t turn, Stores stores) {
  for (std::uint32_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    const std::byte* from =
        layout_.is_local(r) ? local_->slot(layout_.place_of(r), turn) : remote_raw(r, turn);
    copy(out + r * each_bytes + range.begin, from, range.size, stores);
  }
}

}  // namespace muster::collective
