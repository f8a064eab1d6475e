#include "muster/collective/state.h"

#include <fmt/format.h>

#include <cstring>

namespace muster::collective {
namespace {

// Adds the time from its construction to its destruction.
class Stopwatch {
 public:
  explicit Stopwatch(Duration& total) : total_(total), start_(real_clock().now()) {}
  ~Stopwatch() { total_ += real_clock().now() - start_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  Duration& total_;
  TimePoint start_;
};

// From its construction to its destruction.
class Mark {
 public:
  Mark(std::atomic<std::uint64_t>& mark, std::uint64_t value) : mark_(mark) {
    mark_.store(value, std::memory_order_relaxed);
  }
  ~Mark() { mark_.store(0, std::memory_order_relaxed); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  std::atomic<std::uint64_t>& mark_;
};

constexpr Operation operation_of(Kind kind) {
  return static_cast<Operation>(static_cast<std::uint8_t>(kind) + 1);
}
static_assert(operation_of(Kind::all_reduce) == Operation::all_reduce);
static_assert(operation_of(Kind::barrier) == Operation::barrier);

}  // namespace

// One chunk of an all_reduce: where it lies in the caller's buffers, and the sync after which its raw values
// are complete.
struct Communicator::State::Piece {
  const std::byte* in;
  std::byte* out;
  std::size_t begin;  // in the tensor
  std::size_t size_bytes;
  std::uint64_t sync_number;
};

Communicator::State::State(Group group, Sizes sizes, Connections connections, std::unique_ptr<Door> door,
                           net::StopSignal stop, Origin origin)
    : group_(std::move(group)),
      sizes_(sizes),
      local_(std::move(connections.local)),
      door_(std::move(door)),
      links_(group_.rank, {.epoch = group_.epoch, .job_id = group_.job_id}, std::move(connections.links),
             door_.get()),
      remote_pairs_({.epoch = group_.epoch, .job_id = group_.job_id}, group_.rank, door_.get(),
                    {.to_them = std::move(connections.messages_to_them),
                     .to_us = std::move(connections.messages_to_us)}),
      stop_(std::move(stop)),
      origin_(std::move(origin)),
      received_stride_(std::max(sizes_.small_size_bytes, slice_of(sizes_.chunk_size_bytes, 0, size()).size)),
      sources_(size()),
      reached_(local_size()) {
  if (local_) local_pairs_.emplace(*local_);
  look_at_remote_ = [this]() -> Result<> {
    MUSTER_TRY_VOID(usable_for_messages());  // leave() wakes nobody here
    return remote_pairs_.look();
  };
  look_at_local_ = [this]() -> Result<> {
    if (!local_) return {};
    if (auto reason = local_pairs_->ended()) return fail(*std::move(reason));
    return {};
  };
  if (!door_) return;
  DoorWatch::Duties duties{.attend = [this]() -> Result<bool> {
    const auto calls_have_more = links_.attend();  // this serves the door
    const bool messages_have_more = remote_pairs_.attend();
    if (!calls_have_more) return calls_have_more;
    return *calls_have_more || messages_have_more;
  }};
  if (origin_.security && origin_.security->uses_certificates())
    duties.check_peers = [this] { check_peers(); };
  door_watch_.emplace(*door_, stop_, std::move(duties));
}

// No connection with the same certificate can take the place of those that end here: the group is over, and
// for the next one it is checked again.
void Communicator::State::check_peers() {
  const auto good = links_.check_peers().and_then([this] { return remote_pairs_.check_peers(); });
  if (good) return;
  log::error(good.error().message);
  abort(good.error());
}

// Peers that still wait for this rank learn at once that it will not come.
Communicator::State::~State() {
  if (fork_count_ != net::fork_count()) return;
  stop_.raise();
  if (door_) door_->shut();
  if (!local_) return;
  local_->abort({Code::peer_lost, fmt::format("rank {} left the group", group_.rank)});
  local_pairs_->leave();
}

bool Communicator::State::end(const Error& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return false;
    failure_ = reason;
  }
  failed_.store(true, std::memory_order_release);
  stop_.raise();
  if (door_)
    door_->shut();  // first: who finds its connection reset calls, and learns so that it is no accident
  links_.reset();
  if (local_) local_->abort(reason);
  return true;
}

void Communicator::State::abort(Error reason) {
  if (!end(reason)) return;
  remote_pairs_.reset();
  if (local_) local_pairs_->abort(reason);
}

// Collective calls need everybody, messages do not: others may still be at it.
void Communicator::State::leave(Error reason) {
  if (!end(reason)) return;
  remote_pairs_.finish();
  if (local_) local_pairs_->leave();
}

std::optional<Error> Communicator::State::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

tl::unexpected<Error> Communicator::State::fail_group(const Error& error) {
  abort(error);
  links_.forget();
  return fail(*failure());
}

Result<> Communicator::State::usable() {
  MUSTER_TRY_VOID(usable_for_messages());
  if (local_ && local_->aborted()) return fail_group(local_->abort_reason());
  return {};
}

Result<> Communicator::State::usable_for_messages() {
  if (fork_count_ != net::fork_count())
    return fail(Code::refused, "a forked child cannot use its parent's communicator");
  if (failed_.load(std::memory_order_acquire)) return fail(*failure());
  return {};
}

Result<> Communicator::State::begin(Call& call, const Offsets& offsets) {
  MUSTER_TRY_VOID(usable());
  call.number = ++calls_;
  in_call_.store(call.number << operation_bits | static_cast<std::uint64_t>(operation_of(call.kind)),
                 std::memory_order_relaxed);
  deadline_.reset();
  if (local_) local_->announce(call, offsets);
  if (!links_.empty()) links_.announce(call);
  return {};
}

UnderWay Communicator::State::under_way() const {
  const std::uint64_t call = in_call_.load(std::memory_order_relaxed);
  const auto operation = static_cast<Operation>(call & ((1U << operation_bits) - 1));
  const std::uint64_t number = call >> operation_bits;
  if (operation != Operation::none) return {operation, number, number - 1};
  if (const std::uint64_t from = in_receive_.load(std::memory_order_relaxed); from != 0)
    return {Operation::receive, from >> 1, number};
  if (const std::uint64_t to = in_send_.load(std::memory_order_relaxed); to != 0)
    return {Operation::send, to >> 1, number};
  return {Operation::none, 0, number};
}

TimePoint Communicator::State::deadline() {
  if (!deadline_) deadline_ = real_clock().now() + origin_.call_timeout;
  return *deadline_;
}

Result<> Communicator::State::exchange() {
  if (links_.empty()) return {};
  return links_.run({.deadline = deadline(), .stop = &stop_});
}

Result<> Communicator::State::settle() {
  if (links_.empty()) return {};
  return links_.settle({.deadline = deadline(), .stop = &stop_});
}

// Waiting at one door must not make deaf for what comes to the other.
MessageWait Communicator::State::message_wait(const std::function<Result<>()>& look) const {
  const TimePoint now = real_clock().now();
  return {.start = now, .deadline = now + origin_.call_timeout, .stop = &stop_, .look = look};
}

Result<> Communicator::State::send(std::uint32_t to, SentPieces pieces) {
  MUSTER_TRY_VOID(usable_for_messages());
  const Mark mark(in_send_, std::uint64_t{to} << 1 | 1);
  const Message message = message_of(pieces, {.from = group_.rank, .to = to});
  const Result<> done = is_local(to) ? local_pairs_->send(pieces, message, message_wait(look_at_remote_))
                                     : remote_pairs_.send(pieces, message, message_wait(look_at_local_));
  if (!done) return fail_group(done.error());
  return {};
}

Result<> Communicator::State::receive(std::uint32_t from, ReceivedPieces pieces) {
  MUSTER_TRY_VOID(usable_for_messages());
  const Mark mark(in_receive_, std::uint64_t{from} << 1 | 1);
  const Message message = message_of(pieces, {.from = from, .to = group_.rank});
  const Result<> done = is_local(from) ? local_pairs_->receive(pieces, message, message_wait(look_at_remote_))
                                       : remote_pairs_.receive(pieces, message, message_wait(look_at_local_));
  if (!done) return fail_group(done.error());
  return {};
}

// A rank that is alone on its host has nobody to share with.
Result<std::shared_ptr<std::byte>> Communicator::State::shared_buffer(std::size_t size_bytes) {
  MUSTER_TRY_VOID(usable());
  if (local_) return local_->room().take(size_bytes);
  constexpr std::align_val_t alignment{64};
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(::operator new(size_bytes, alignment)),
                                    [](std::byte* data) { ::operator delete(data, alignment); });
}

Offsets Communicator::State::offsets_of(const void* in, const void* out, std::size_t size_bytes) const {
  if (!local_ || size_bytes <= sizes_.small_size_bytes) return {};
  const auto offset_of = [&](const void* data) {
    return local_->room().offset_of(static_cast<const std::byte*>(data), size_bytes);
  };
  const Offset of_in = offset_of(in);
  return {.in = of_in, .out = in == out ? of_in : offset_of(out)};
}

Result<> Communicator::State::barrier(const Call& call) {
  MUSTER_TRY_VOID(exchange());
  return sync(call);
}

Result<> Communicator::State::all_reduce(const std::byte* in, std::byte* out, const Call& call) {
  if (call.count == 0) return barrier(call);
  if (!links_.empty() && received_.empty()) received_.resize(links_.size() * received_stride_);
  const bool small = call.count * size_bytes(call.dtype) <= sizes_.small_size_bytes;
  return small ? reduce_small(in, out, call) : reduce_chunks(in, out, call);
}

// Everybody's values go whole to every host; there, the last rank to arrive combines them for all.
Result<> Communicator::State::reduce_small(const std::byte* in, std::byte* out, const Call& call) {
  const std::size_t bytes = call.count * size_bytes(call.dtype);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    links_.send(i, {in, bytes});
    links_.receive(i, {raw_of(i), bytes});
    sources_[links_.rank_of(i)] = raw_of(i);
  }
  sources_[group_.rank] = in;
  std::byte* result = out;
  if (local_) {
    for (std::uint32_t r = 0; r < local_->size(); ++r) sources_[local_->ranks()[r]] = local_->small_slot(r);
    copy(local_->small_slot(local_->local_rank()), in, bytes, Stores::cached);
    result = local_->small_result();
  }
  MUSTER_TRY_VOID(exchange());
  MUSTER_TRY_VOID(settle());  // the result may be written over what was sent
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

// A pipeline of two stages: while a chunk's raw values travel to the owners of its slices, the results of the
// chunk before travel back. One exchange and one sync serve both.
Result<> Communicator::State::reduce_chunks(const std::byte* in, std::byte* out, const Call& call) {
  const std::size_t bytes = call.count * size_bytes(call.dtype);
  const Chunks chunks(bytes, sizes_.chunk_size_bytes);
  const Stores shared = store_choice_.next(bytes);
  const Stores own = chunks.count() > 1 ? Stores::streaming : Stores::cached;
  Duration busy{};
  std::optional<Piece> before;
  for (std::size_t i = 0; i <= chunks.count(); ++i) {
    std::optional<Piece> current;
    if (i < chunks.count()) {
      const Stopwatch watch(busy);
      current = piece_of(in, out, chunks[i]);
      share_raw(*current, shared);
      queue_raw(*current);
    }
    if (before) queue_results(*before);
    MUSTER_TRY_VOID(exchange());
    MUSTER_TRY_VOID(sync(call));
    if (i == 0 && local_) {
      MUSTER_TRY_VOID(reach_all(bytes));
      if (all_reached_ && links_.empty()) return reduce_in_place(piece_of(in, out, {0, bytes}), call);
    }
    const Stopwatch watch(busy);
    if (before) collect_results(*before, own);
    if (current) reduce_own(*current, call, shared, own);
    before = current;
  }
  store_choice_.record(bytes, busy);
  return {};
}

// After a call's first sync: every rank learns the same, so all of them go the same way on.
Result<> Communicator::State::reach_all(std::size_t size_bytes) {
  all_reached_ = true;
  result_is_wanted_ = false;
  SharedRoom& room = local_->room();
  for (std::uint32_t r = 0; r < local_->size(); ++r) {
    const Offsets told = local_->offsets(r);
    all_reached_ = all_reached_ && told.in != nowhere && told.out != nowhere;
    reached_[r] = {};
    if (r == local_->local_rank()) continue;
    for (const Offset offset : {told.in, told.out})
      if (offset != nowhere) MUSTER_TRY_VOID(room.reach(r, offset, size_bytes));
    if (told.in != nowhere) reached_[r].in = room.at(r, told.in);
    if (told.out != nowhere) reached_[r].out = room.at(r, told.out);
    result_is_wanted_ = result_is_wanted_ || told.out == nowhere;
  }
  return {};
}

// The owner of a slice reads it in the memory of all ranks and writes the result to all: no copies, and one
// more sync, however much it is.
Result<> Communicator::State::reduce_in_place(const Piece& whole, const Call& call) {
  const Stores stores = store_choice_in_place_.next(whole.size_bytes);
  Duration busy{};
  {
    const Stopwatch watch(busy);
    reduce_own(whole, call, stores, stores);
  }
  store_choice_in_place_.record(whole.size_bytes, busy);
  return sync(call);
}

Communicator::State::Piece Communicator::State::piece_of(const std::byte* in, std::byte* out,
                                                         Range range) const {
  return {.in = in + range.begin,
          .out = out + range.begin,
          .begin = range.begin,
          .size_bytes = range.size,
          .sync_number = local_ ? local_->syncs() + 1 : 0};
}

void Communicator::State::share_raw(const Piece& piece, Stores stores) {
  if (!local_ || own_offsets().in != nowhere) return;
  std::byte* slot = local_->slot(local_->local_rank(), piece.sync_number);
  for (const std::uint32_t owner : local_->ranks()) {
    if (owner == group_.rank) continue;
    const Range slice = slice_of(piece.size_bytes, owner, size());
    copy(slot + slice.begin, piece.in + slice.begin, slice.size, stores);
  }
}

void Communicator::State::queue_raw(const Piece& piece) {
  const Range mine = slice_of(piece.size_bytes, group_.rank, size());
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const Range theirs = slice_of(piece.size_bytes, links_.rank_of(i), size());
    links_.send(i, {piece.in + theirs.begin, theirs.size});
    links_.receive(i, {raw_of(i), mine.size});
  }
}

void Communicator::State::queue_results(const Piece& piece) {
  const Range mine = slice_of(piece.size_bytes, group_.rank, size());
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const Range theirs = slice_of(piece.size_bytes, links_.rank_of(i), size());
    links_.send(i, {piece.out + mine.begin, mine.size});
    links_.receive(i, {piece.out + theirs.begin, theirs.size});
  }
}

void Communicator::State::reduce_own(const Piece& piece, const Call& call, Stores shared, Stores own) {
  const Range mine = slice_of(piece.size_bytes, group_.rank, size());
  if (mine.size == 0) return;
  if (local_)
    for (std::uint32_t r = 0; r < local_->size(); ++r)
      sources_[local_->ranks()[r]] = local_raw(piece, r) + mine.begin;
  for (std::size_t i = 0; i < links_.size(); ++i) sources_[links_.rank_of(i)] = raw_of(i);
  sources_[group_.rank] = piece.in + mine.begin;
  choose_destinations(piece, mine.begin, shared, own);
  combine({.sources = sources_,
           .destinations = destinations_,
           .count = mine.size / size_bytes(call.dtype),
           .dtype = call.dtype,
           .reduction = call.reduction});
}

const std::byte* Communicator::State::local_raw(const Piece& piece, std::uint32_t local_rank) const {
  const std::byte* in = reached_[local_rank].in;
  return in != nullptr ? in + piece.begin : local_->slot(local_rank, piece.sync_number);
}

// Of the result of this rank's slice, which begins at `begin` in the piece.
void Communicator::State::choose_destinations(const Piece& piece, std::size_t begin, Stores shared,
                                              Stores own) {
  destinations_.assign({{.bytes = piece.out + begin, .stores = own}});
  if (!local_) return;
  if (result_is_wanted_)
    destinations_.push_back({.bytes = local_->result(piece.sync_number) + begin, .stores = shared});
  for (const Reached& peer : reached_)
    if (peer.out != nullptr)
      destinations_.push_back({.bytes = peer.out + piece.begin + begin, .stores = shared});
}

void Communicator::State::collect_results(const Piece& piece, Stores stores) {
  if (!local_ || own_offsets().out != nowhere) return;
  const std::byte* result = local_->result(piece.sync_number);
  for (const std::uint32_t owner : local_->ranks()) {
    if (owner == group_.rank) continue;
    const Range slice = slice_of(piece.size_bytes, owner, size());
    copy(piece.out + slice.begin, result + slice.begin, slice.size, stores);
  }
}

// On the root's host the root shares the bytes, on every other host its first rank, which the root sends to.
Result<> Communicator::State::broadcast(std::byte* data, const Call& call) {
  const Chunks chunks(call.count, sizes_.chunk_size_bytes);
  if (chunks.count() == 0) return barrier(call);
  const std::uint32_t first = local_ ? local_->ranks().front() : group_.rank;
  const bool root_is_here = local_ ? local_->has(call.root) : call.root == group_.rank;
  const std::uint32_t sharer = root_is_here ? call.root : first;
  for (std::size_t c = 0; c < chunks.count(); ++c) {
    const auto [begin, bytes] = chunks[c];
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (call.root == group_.rank && first_of_host(links_.rank_of(i))) links_.send(i, {data + begin, bytes});
      if (links_.rank_of(i) == call.root && sharer == group_.rank) links_.receive(i, {data + begin, bytes});
    }
    MUSTER_TRY_VOID(exchange());
    if (local_ && sharer == group_.rank)
      copy(local_->slot(local_->local_rank(), local_->syncs() + 1), data + begin, bytes, Stores::cached);
    MUSTER_TRY_VOID(sync(call));
    if (local_ && sharer != group_.rank)
      copy(data + begin, local_->slot(local_->place_of(sharer), local_->syncs()), bytes, Stores::cached);
  }
  return {};
}

bool Communicator::State::first_of_host(std::uint32_t rank) const {
  for (std::uint32_t lower = 0; lower < rank; ++lower)
    if (group_.endpoints[lower].host_key == group_.endpoints[rank].host_key) return false;
  return true;
}

Result<> Communicator::State::all_gather(const std::byte* in, std::byte* out, const Call& call) {
  const Chunks chunks(call.count, sizes_.chunk_size_bytes);
  if (chunks.count() == 0) return barrier(call);
  const auto place = [&](std::uint32_t rank) { return out + rank * call.count; };
  for (std::size_t c = 0; c < chunks.count(); ++c) {
    const auto [begin, bytes] = chunks[c];
    for (std::size_t i = 0; i < links_.size(); ++i) {
      links_.send(i, {in + begin, bytes});
      links_.receive(i, {place(links_.rank_of(i)) + begin, bytes});
    }
    MUSTER_TRY_VOID(exchange());
    if (local_)
      copy(local_->slot(local_->local_rank(), local_->syncs() + 1), in + begin, bytes, Stores::cached);
    MUSTER_TRY_VOID(sync(call));
    for (std::uint32_t r = 0; r < local_size(); ++r)
      if (local_ && r != local_->local_rank())
        copy(place(local_->ranks()[r]) + begin, local_->slot(r, local_->syncs()), bytes, Stores::cached);
    if (place(group_.rank) != in) copy(place(group_.rank) + begin, in + begin, bytes, Stores::cached);
  }
  return {};
}

}  // namespace muster::collective
