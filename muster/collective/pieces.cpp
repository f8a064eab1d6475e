// Calls in which ranks have a piece for each other rank: all_to_all, gather, scatter, all_gather of unequal
// sizes, and reduce_scatter. docs/adr/0046-pieces.md.
//
// One algorithm serves them. In each step every rank moves the next part of each of its pieces: to the ranks
// of its host through its slot, to those of other hosts over the lanes, which bring them to the shared raw
// areas; after the step's sync each rank takes what is its own. On one host each rank may read
// large pieces where they lie instead (reading.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "muster/collective/group_communicator.h"

namespace muster::collective {
namespace {

// More ranks than that do not tell each other all their sizes: the table would have gigabytes.
constexpr std::uint32_t uneven_ranks_max = 4096;

std::size_t whole_lines_of(std::size_t size_bytes) {
  return size_bytes < line_size_bytes ? size_bytes : size_bytes / line_size_bytes * line_size_bytes;
}

// Of a piece of that size.
Range part_of(std::size_t size_bytes, Range part) {
  const std::size_t begin = std::min(size_bytes, part.begin);
  return {.begin = begin, .size = std::min(part.size, size_bytes - begin)};
}

template <class Pieces>
std::span<const std::byte> sizes_in_bytes(const Pieces& pieces, std::vector<std::uint64_t>& sizes) {
  sizes.clear();
  for (const auto& piece : pieces) sizes.push_back(piece.size());
  return std::as_bytes(std::span(sizes));
}

}  // namespace

// ---- Sizes ------------------------------------------------------------------------------------------------

// How much of each piece moves in one step, so that a slot holds what a rank has for those that read it
// there, and a raw area what a rank of another host has for this one.
Result<std::size_t> GroupCommunicator::step_of(const Routes& routes) const {
  const std::size_t neighbours = layout_.most_ranks_of_a_host();
  const std::size_t readers = layout_.is_even() ? neighbours : size();
  std::size_t step = sizes_.chunk_size_bytes / (routes.one_for_all ? 1 : readers);
  if (!layout_.has_one_host() && (neighbours > 1 || routes.combines))
    step = std::min(step, sizes_.raw_size_bytes / (routes.one_for_all ? 1 : neighbours));
  constexpr std::size_t largest_element = 8;
  if (step >= largest_element) return whole_lines_of(step);
  return fail(Code::invalid_argument,
              fmt::format("{} ranks are too many for a call in which each has a piece for each", size()));
}

// In a slot, or in the raw area of a rank of another host.
std::size_t GroupCommunicator::place_in_slot(const Routes& routes, std::uint32_t to, Range part) const {
  if (routes.one_for_all) return 0;
  return (layout_.is_even() ? layout_.place_of(to) : to) * part.size;
}

bool GroupCommunicator::has_lane_of(std::uint32_t rank) const {
  return std::ranges::any_of(layout_.lanes(), [&](const Lane& lane) {
    return lane.host == layout_.host_of(rank) && lane.theirs.has(layout_.place_of(rank));
  });
}

Result<> GroupCommunicator::check_pieces(SentPieces in, ReceivedPieces out, std::string_view what) const {
  if (in.size() != size() || out.size() != size())
    return fail(Code::invalid_argument,
                fmt::format("{} of {} pieces into {} in a group of {} ranks: it takes one for each rank",
                            what, in.size(), out.size(), size()));
  if (in[rank()].size() == out[rank()].size()) return {};
  return fail(Code::invalid_argument,
              fmt::format("{} on rank {}: its piece for itself has {} bytes, and the place for it {}", what,
                          rank(), in[rank()].size(), out[rank()].size()));
}

// ---- Steps ------------------------------------------------------------------------------------------------

Result<> GroupCommunicator::pass_pieces(const Routes& routes, const Call& call) {
  if (!may_read_pieces(routes.longest)) return pass_through_slots(routes, call);
  return move_pieces(routes, call, [&] { return pass_through_slots(routes, call); });
}

Result<> GroupCommunicator::pass_through_slots(const Routes& routes, const Call& call) {
  MUSTER_TRY(const std::size_t step, step_of(routes));
  if (routes.longest == 0) return barrier(call);
  const std::size_t most_bytes = routes.longest * size();
  const Stores stores = store_choice_pieces_.next(most_bytes);
  Duration busy{};
  for (std::size_t begin = 0; begin < routes.longest; begin += step) {
    const Range part{.begin = begin, .size = step};
    const std::uint64_t turn = next_turn();
    MUSTER_TRY_VOID(move_part(routes, part, call, turn));
    const Stopwatch watch(origin_.clock, busy, store_choice_pieces_.is_trying(most_bytes));
    take_part(routes, part, turn, stores);
  }
  store_choice_pieces_.record(most_bytes, busy);
  return {};
}

Result<> GroupCommunicator::move_part(const Routes& routes, Range part, const Call& call,
                                      std::uint64_t turn) {
  if (!layout_.is_even()) give_part(routes, part, turn);
  MUSTER_TRY_VOID(share(call));
  queue_part(routes, part, turn);
  MUSTER_TRY_VOID(exchange());
  if (layout_.is_even()) give_part(routes, part, turn);
  return sync(call);
}

// To the ranks of this host, and to those of them that send it on.
void GroupCommunicator::give_part(const Routes& routes, Range part, std::uint64_t turn) {
  if (!local_ || own_offsets().in != nowhere) return;
  std::byte* const slot = local_->slot(local_->local_rank(), turn);
  const auto give = [&](std::uint32_t to) {
    const Range given = part_of(routes.size(rank(), to), part);
    if (given.size == 0) return false;
    copy(slot + place_in_slot(routes, to, part), routes.sent(to) + given.begin, given.size, Stores::cached);
    return true;
  };
  for (std::uint32_t to = 0; to < size(); ++to) {
    if (to == rank() || (layout_.is_even() && !layout_.is_local(to))) continue;
    if (give(to) && routes.one_for_all) return;
  }
}

// A frame for each piece, empty ones too: each step shows that the other side has the last one's.
void GroupCommunicator::queue_part(const Routes& routes, Range part, std::uint64_t turn) {
  for (std::size_t i = 0; i < layout_.lanes().size(); ++i) {
    const Lane& lane = layout_.lanes()[i];
    for (std::uint32_t place = lane.ours.begin; place < lane.ours.end(); ++place)
      send_part(i, place, routes, part, turn);
    for (std::uint32_t place = lane.theirs.begin; place < lane.theirs.end(); ++place)
      receive_part(i, layout_.ranks_of(lane.host)[place], routes, part, turn);
  }
}

// What the rank in that place of this host has for the lane's other host.
void GroupCommunicator::send_part(std::size_t lane, std::uint32_t place, const Routes& routes, Range part,
                                  std::uint64_t turn) {
  const std::uint32_t from = layout_.own_ranks()[place];
  std::span<const std::byte> for_all;
  for (const std::uint32_t to : layout_.ranks_of(layout_.lanes()[lane].host)) {
    const Range sent = part_of(routes.size(from, to), part);
    std::span<const std::byte> payload;
    if (sent.size > 0 && from == rank())
      payload = {routes.sent(to) + sent.begin, sent.size};
    else if (sent.size > 0)
      payload = {local_->slot(place, turn) + place_in_slot(routes, to, part), sent.size};
    if (!routes.one_for_all)
      links_.send(lane, payload);
    else if (for_all.empty())
      for_all = payload;
  }
  if (routes.one_for_all) links_.send(lane, for_all);
}

void GroupCommunicator::receive_part(std::size_t lane, std::uint32_t from, const Routes& routes, Range part,
                                     std::uint64_t turn) {
  std::span<std::byte> for_all;
  for (const std::uint32_t to : layout_.own_ranks()) {
    const Range got = part_of(routes.size(from, to), part);
    const bool straight = !routes.combines && to == rank() && (!routes.one_for_all || !local_);
    std::span<std::byte> payload;
    if (got.size > 0 && straight)
      payload = routes.out[from].subspan(got.begin, got.size);
    else if (got.size > 0)
      payload = {remote_raw(from, turn) + (routes.one_for_all ? 0 : layout_.place_of(to) * part.size),
                 got.size};
    if (!routes.one_for_all)
      links_.receive(lane, payload);
    else if (for_all.empty())
      for_all = payload;
  }
  if (routes.one_for_all) links_.receive(lane, for_all);
}

void GroupCommunicator::take_part(const Routes& routes, Range part, std::uint64_t turn, Stores stores) {
  for (std::uint32_t from = 0; from < size(); ++from) {
    const Range got = part_of(routes.size(from, rank()), part);
    if (got.size == 0) continue;
    std::byte* const to = routes.out[from].data() + got.begin;
    if (from == rank()) {
      const std::byte* const own = routes.sent(rank()) + got.begin;
      if (own != to) copy(to, own, got.size, stores);
    } else if (layout_.is_local(from)) {
      const std::byte* const slot = local_->slot(layout_.place_of(from), turn);
      copy(to, slot + place_in_slot(routes, rank(), part), got.size, stores);
    } else if (local_ && (routes.one_for_all || !has_lane_of(from))) {
      const std::size_t place = routes.one_for_all ? 0 : layout_.place_of(rank()) * part.size;
      copy(to, remote_raw(from, turn) + place, got.size, stores);
    }
  }
}

// ---- Calls ------------------------------------------------------------------------------------------------

Result<> GroupCommunicator::all_to_all(SentPieces in, ReceivedPieces out) {
  MUSTER_TRY_VOID(check_pieces(in, out, "all_to_all"));
  const std::size_t bytes = in[0].size();
  const auto fits = [&](const auto& piece) { return piece.size() == bytes; };
  if (!std::ranges::all_of(in, fits) || !std::ranges::all_of(out, fits))
    return fail(Code::invalid_argument,
                fmt::format("all_to_all on rank {}: its pieces differ in size (the first has {} bytes); "
                            "all_to_all_uneven takes such",
                            rank(), bytes));
  MUSTER_TRY_VOID(check_size(bytes, size()));
  const Routes routes{.in = in, .out = out, .size = [bytes](auto, auto) { return bytes; }, .longest = bytes};
  return run({.count = bytes, .kind = CallKind::all_to_all},
             [&](const Call& numbered) { return pass_pieces(routes, numbered); });
}

Result<> GroupCommunicator::all_to_all_uneven(SentPieces in, ReceivedPieces out) {
  MUSTER_TRY_VOID(check_pieces(in, out, "all_to_all_uneven"));
  for (const auto& piece : in) MUSTER_TRY_VOID(check_size(piece.size(), size()));
  if (size() > uneven_ranks_max)
    return fail(Code::invalid_argument,
                fmt::format("all_to_all_uneven among {} ranks; at most {} are possible: use all_to_all, with "
                            "pieces of one size",
                            size(), uneven_ranks_max));
  std::vector<std::uint64_t> sizes;  // kept until the call has ended, like all that is sent
  const auto told = sizes_in_bytes(in, sizes);
  return run({.kind = CallKind::all_to_all, .uneven = true},
             [&](const Call& numbered) { return all_to_all_uneven(in, out, told, numbered); });
}

Result<> GroupCommunicator::all_to_all_uneven(SentPieces in, ReceivedPieces out,
                                              std::span<const std::byte> told, const Call& call) {
  std::vector<std::uint64_t> table(std::size_t{size()} * size());
  MUSTER_TRY_VOID(all_gather(told.data(), reinterpret_cast<std::byte*>(table.data()), told.size(), call));
  const auto size_of = [&](std::uint32_t from, std::uint32_t to) {
    return static_cast<std::size_t>(table[std::size_t{from} * size() + to]);
  };
  for (std::uint32_t from = 0; from < size(); ++from)
    if (size_of(from, rank()) != out[from].size())
      return fail(Code::invalid_argument,
                  fmt::format("rank {} sends {} bytes to rank {} in {}, which expects {}", from,
                              size_of(from, rank()), rank(), to_string(call), out[from].size()));
  return pass_pieces({.in = in, .out = out, .size = size_of, .longest = *std::ranges::max_element(table)},
                     call);
}

Result<> GroupCommunicator::all_gather(std::span<const std::byte> in, ReceivedPieces out) {
  const std::vector<std::span<const std::byte>> sent(size(), in);
  MUSTER_TRY_VOID(check_pieces(sent, out, "all_gather"));
  std::vector<std::uint64_t> sizes;
  const auto hashed = net::payload_checksum(sizes_in_bytes(out, sizes));
  std::size_t sum = 0;
  for (const std::size_t each : sizes) MUSTER_TRY_VOID(check_size(sum += each, 1));
  const Routes routes{.in = {&in, 1},
                      .out = out,
                      .size = [&](std::uint32_t from, auto) { return out[from].size(); },
                      .longest = *std::ranges::max_element(sizes),
                      .one_for_all = true};
  return run({.count = sum,
              .root = static_cast<std::uint32_t>(hashed),
              .kind = CallKind::all_gather,
              .uneven = true},
             [&](const Call& numbered) { return pass_pieces(routes, numbered); });
}

Result<> GroupCommunicator::gather(std::span<const std::byte> in, ReceivedPieces out, std::uint32_t root) {
  MUSTER_TRY_VOID(check_root(root, "gather to"));
  MUSTER_TRY_VOID(check_size(in.size(), size()));
  const auto fits = [&](const auto& piece) { return piece.size() == in.size(); };
  if (rank() == root && (out.size() != size() || !std::ranges::all_of(out, fits)))
    return fail(Code::invalid_argument,
                fmt::format("gather to rank {}: the root gives {} places; it takes one of {} bytes for each "
                            "of {} ranks",
                            root, out.size(), in.size(), size()));
  const Routes routes{.in = {&in, 1},
                      .out = out,
                      .size = [&](auto, std::uint32_t to) { return to == root ? in.size() : std::size_t{0}; },
                      .longest = in.size(),
                      .one_for_all = true};
  return run({.count = in.size(), .root = root, .kind = CallKind::gather},
             [&](const Call& numbered) { return pass_pieces(routes, numbered); });
}

Result<> GroupCommunicator::scatter(SentPieces in, std::span<std::byte> out, std::uint32_t root) {
  MUSTER_TRY_VOID(check_root(root, "scatter from"));
  MUSTER_TRY_VOID(check_size(out.size(), size()));
  const auto fits = [&](const auto& piece) { return piece.size() == out.size(); };
  if (rank() == root && (in.size() != size() || !std::ranges::all_of(in, fits)))
    return fail(Code::invalid_argument,
                fmt::format("scatter from rank {}: the root gives {} pieces; it takes one of {} bytes for "
                            "each of {} ranks",
                            root, in.size(), out.size(), size()));
  const std::vector<std::span<std::byte>> places(size(), out);  // only the root's is read
  const Routes routes{
      .in = in,
      .out = places,
      .size = [&](std::uint32_t from, auto) { return from == root ? out.size() : std::size_t{0}; },
      .longest = out.size()};
  return run({.count = out.size(), .root = root, .kind = CallKind::scatter},
             [&](const Call& numbered) { return pass_pieces(routes, numbered); });
}

// ---- reduce_scatter ---------------------------------------------------------------------------------------

Result<> GroupCommunicator::reduce_scatter(const void* in, void* out, std::size_t count, DType dtype,
                                           Reduction reduction) {
  MUSTER_TRY_VOID(check_reduction(dtype, reduction, "reduce_scatter"));
  MUSTER_TRY_VOID(check_size(count, size() * size_bytes(dtype)));
  const Call call{.count = count, .kind = CallKind::reduce_scatter, .dtype = dtype, .reduction = reduction};
  Offsets offsets;
  if (layout_.has_one_host()) offsets.in = offsets_of(in, in, size() * count * size_bytes(dtype)).in;
  return run(call, offsets, [&](const Call& numbered) {
    return reduce_scatter(static_cast<const std::byte*>(in), static_cast<std::byte*>(out), numbered);
  });
}

Result<> GroupCommunicator::reduce_scatter(const std::byte* in, std::byte* out, const Call& call) {
  const std::size_t bytes = call.count * size_bytes(call.dtype);
  if (bytes == 0) return barrier(call);
  if (!local_ && received_.empty()) received_.resize(layout_.remote_count() * received_stride_);
  std::vector<std::span<const std::byte>> blocks;
  for (std::uint32_t r = 0; r < size(); ++r) blocks.emplace_back(in + r * bytes, bytes);
  const Routes routes{.in = blocks,
                      .out = {},
                      .size = [bytes](auto, auto) { return bytes; },
                      .longest = bytes,
                      .one_for_all = false,
                      .combines = true};
  MUSTER_TRY(const std::size_t step, step_of(routes));
  // Small inputs are not told of, and of those no sync keeps the next call's offsets away.
  const bool may_reach = local_ && layout_.has_one_host() && size() * bytes > sizes_.small_size_bytes;
  std::ranges::fill(reached_, Reached{});
  for (std::size_t begin = 0; begin < bytes; begin += step) {
    const Range part{.begin = begin, .size = step};
    const std::uint64_t turn = next_turn();
    MUSTER_TRY_VOID(move_part(routes, part, call, turn));
    if (begin == 0 && may_reach) {
      MUSTER_TRY(const bool all_reached, reach_inputs(size() * bytes));
      if (all_reached) {
        reduce_part(in, out, {.begin = 0, .size = bytes}, call, turn);
        break;
      }
    }
    reduce_part(in, out, part, call, turn);
  }
  // Until then others may read what this rank has told of.
  return may_reach ? sync(call) : Result<>{};
}

// After a call's first sync: which inputs lie in shared memory. Whether all do: every rank learns the same.
Result<bool> GroupCommunicator::reach_inputs(std::size_t size_bytes) {
  bool all = true;
  for (std::uint32_t r = 0; r < local_->size(); ++r) {
    const Offset in = local_->offsets(r).in;
    all = all && in != nowhere;
    if (in == nowhere || r == local_->local_rank()) continue;
    MUSTER_TRY_VOID(local_->arena().reach(r, in, size_bytes));
    reached_[r].in = local_->arena().at(r, in);
  }
  return all;
}

// The part of this rank's block.
void GroupCommunicator::reduce_part(const std::byte* in, std::byte* out, Range part, const Call& call,
                                    std::uint64_t turn) {
  const std::size_t bytes = call.count * size_bytes(call.dtype);
  const std::size_t in_block = rank() * bytes + part.begin;
  for (std::uint32_t r = 0; r < size(); ++r) {
    if (r == rank()) {
      sources_[r] = in + in_block;
    } else if (!layout_.is_local(r)) {
      sources_[r] = remote_raw(r, turn) + layout_.place_of(rank()) * part.size;
    } else {
      const std::uint32_t place = layout_.place_of(r);
      const std::byte* const reached = reached_[place].in;
      const std::uint32_t own = layout_.is_even() ? layout_.place_of(rank()) : rank();
      sources_[r] = reached != nullptr ? reached + in_block : local_->slot(place, turn) + own * part.size;
    }
  }
  const Destination destination{.bytes = out + part.begin, .stores = Stores::cached};
  combine({.sources = sources_,
           .destinations = {&destination, 1},
           .count = part_of(bytes, part).size / size_bytes(call.dtype),
           .dtype = call.dtype,
           .reduction = call.reduction});
}

}  // namespace muster::collective
