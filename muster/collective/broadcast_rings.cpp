#include "muster/collective/broadcast_rings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "muster/collective/kernels.h"

namespace muster::collective {
namespace {

constexpr std::size_t capacity_bytes = 512 << 10;
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t published_at_once_bytes = 32 << 10;
// Who publishes does not order that before its look for sleepers, which would cost more than a small call. So
// the first sleep after the bell has rung is short: by its end each has seen the other.
constexpr Duration first_sleep = std::chrono::milliseconds(1);

std::size_t whole_lines(std::size_t size_bytes) {
  return (size_bytes + line_size_bytes - 1) / line_size_bytes * line_size_bytes;
}

std::size_t entry_bytes(std::size_t size_bytes) { return line_size_bytes + whole_lines(size_bytes); }

void ring_bell(LocalGroup::RingBell& bell) {
  if (bell.sleeping.load(std::memory_order_relaxed) == 0 || bell.sleeping.exchange(0) == 0) return;
  bell.rung.fetch_add(1);
  net::futex_wake_all(bell.rung);
}

}  // namespace

// Places count bytes from the beginning. Behind this, for each local rank a line with how far it has read,
// then the bytes.
struct BroadcastRings::Ring {
  struct Reader {
    alignas(2 * line_size_bytes) std::atomic<std::uint64_t> read;
  };
  alignas(2 * line_size_bytes) std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> awaited;  // the root waits for all readers to come here; 0: it does not

  Reader& reader(std::uint32_t place) { return std::launder(reinterpret_cast<Reader*>(this + 1))[place]; }
  const Reader& reader(std::uint32_t place) const {
    return std::launder(reinterpret_cast<const Reader*>(this + 1))[place];
  }
};

BroadcastRings::BroadcastRings(LocalGroup& group)
    : group_(group), short_wait_(group.size(), group.clock()), ways_(group.size()) {}

// ---- The memory -------------------------------------------------------------------------------------------

std::size_t BroadcastRings::ring_bytes() const { return data_begin() + capacity_bytes; }

std::size_t BroadcastRings::data_begin() const {
  return (sizeof(Ring) + group_.size() * sizeof(Ring::Reader) + page_bytes - 1) / page_bytes * page_bytes;
}

std::byte* BroadcastRings::at(Ring& ring, std::uint64_t position) const {
  return reinterpret_cast<std::byte*>(&ring) + data_begin() + position % capacity_bytes;
}

Result<> BroadcastRings::make_ring() {
  MUSTER_TRY(std::byte* const memory, group_.arena().take_for_good(ring_bytes()));
  auto* const ring = new (memory) Ring{};
  for (std::uint32_t place = 0; place < group_.size(); ++place) new (&ring->reader(place)) Ring::Reader{};
  own_.store(ring);
  group_.tell_ring(group_.arena().offset_of(memory, ring_bytes()));
  return {};
}

// Null where that root has none yet.
Result<BroadcastRings::Ring*> BroadcastRings::reach(std::uint32_t root_place) {
  Way& way = ways_[root_place];
  if (way.ring != nullptr) return way.ring;
  if (root_place == group_.local_rank()) return own_.load(std::memory_order_relaxed);
  const Offset told = group_.ring_of(root_place);
  if (told == nowhere) return nullptr;
  MUSTER_TRY(way.mapping, group_.arena().map_of(root_place, told, ring_bytes()));
  return way.ring = std::launder(reinterpret_cast<Ring*>(way.mapping.data()));
}

// ---- The root ---------------------------------------------------------------------------------------------

Result<> BroadcastRings::give(const std::byte* data, const Call& call, const Deadline& deadline) {
  if (own_.load(std::memory_order_relaxed) == nullptr) MUSTER_TRY_VOID(make_ring());
  MUSTER_TRY_VOID(reserve(entry_bytes(call.count), call, deadline));
  const CallBytes head = encode(call);
  write(head.data(), head.size());
  written_ = whole_lines(written_);
  for (std::size_t done = 0; done < call.count;) {
    const std::size_t now = std::min<std::size_t>(call.count - done, published_at_once_bytes);
    write(data + done, now);
    done += now;
    if (done == call.count) written_ = whole_lines(written_);
    publish();
  }
  return {};
}

std::uint64_t BroadcastRings::slowest() const {
  const Ring& ring = *own_.load(std::memory_order_relaxed);
  std::uint64_t least = written_;
  for (std::uint32_t place = 0; place < group_.size(); ++place)
    if (place != group_.local_rank())
      least = std::min(least, ring.reader(place).read.load(std::memory_order_acquire));
  return least;
}

// Where it is full, the root waits until half of it is free: once for long costs less than each time a
// little.
Result<> BroadcastRings::reserve(std::size_t size_bytes, const Call& call, const Deadline& deadline) {
  if (written_ + size_bytes <= free_until_) return {};
  free_until_ = slowest() + capacity_bytes;
  if (written_ + size_bytes <= free_until_) return {};
  const std::uint64_t wanted = written_ - capacity_bytes / 2;
  Ring& ring = *own_.load(std::memory_order_relaxed);
  awaits_room_.store(true, std::memory_order_relaxed);
  ring.awaited.store(wanted);
  const Result<> waited = await(
      group_.ring_room(), [&] { return slowest() >= wanted; }, call, deadline);
  ring.awaited.store(0, std::memory_order_relaxed);
  awaits_room_.store(false, std::memory_order_relaxed);
  free_until_ = slowest() + capacity_bytes;
  return waited;
}

void BroadcastRings::write(const std::byte* bytes, std::size_t size_bytes) {
  Ring& ring = *own_.load(std::memory_order_relaxed);
  const std::size_t in_a_row = std::min<std::size_t>(size_bytes, capacity_bytes - written_ % capacity_bytes);
  copy(at(ring, written_), bytes, in_a_row, Stores::cached);
  copy(at(ring, written_ + in_a_row), bytes + in_a_row, size_bytes - in_a_row, Stores::cached);
  written_ += size_bytes;
}

void BroadcastRings::publish() {
  own_.load(std::memory_order_relaxed)->written.store(written_, std::memory_order_release);
  ring_bell(group_.ring_news());
}

// ---- The others -------------------------------------------------------------------------------------------

Result<> BroadcastRings::take(std::uint32_t root_place, std::byte* data, const Call& call,
                              const Deadline& deadline) {
  Way& way = ways_[root_place];
  std::uint64_t ready = 0;
  const auto await_more = [&](std::uint64_t position) -> Result<> {
    if (way.ring != nullptr) ready = way.ring->written.load(std::memory_order_acquire);
    if (ready > position) return {};
    awaited_root_.store(root_place, std::memory_order_relaxed);
    Result<> reached;
    const Result<> waited = await(
        group_.ring_news(),
        [&] {
          if (way.ring == nullptr && group_.ring_of(root_place) != nowhere) {
            const auto ring = reach(root_place);
            if (!ring) reached = fail(ring.error());
            if (!ring) return true;
          }
          if (way.ring != nullptr) ready = way.ring->written.load(std::memory_order_acquire);
          return ready > position;
        },
        call, deadline);
    awaited_root_.store(no_root, std::memory_order_relaxed);
    MUSTER_TRY_VOID(waited);
    return reached;
  };
  std::uint64_t position = way.position;
  MUSTER_TRY_VOID(await_more(position));
  MUSTER_TRY(const Call given, head_at(*way.ring, position));
  if (!(given == call))
    return fail(mismatch(group_.ranks()[group_.local_rank()], call, group_.ranks()[root_place], given));
  position += line_size_bytes;
  for (std::size_t done = 0; done < call.count;) {
    MUSTER_TRY_VOID(await_more(position));
    const std::uint64_t here = std::min<std::uint64_t>(
        {ready - position, call.count - done, capacity_bytes - position % capacity_bytes});
    copy(data + done, at(*way.ring, position), here, Stores::cached);
    done += here;
    position += here;
  }
  advance(way, whole_lines(position));
  return {};
}

void BroadcastRings::advance(Way& way, std::uint64_t to) {
  const std::uint64_t before = std::exchange(way.position, to);
  way.ring->reader(group_.local_rank()).read.store(to, std::memory_order_release);
  const std::uint64_t awaited = way.ring->awaited.load(std::memory_order_relaxed);
  if (before < awaited && to >= awaited) ring_bell(group_.ring_room());
}

Result<Call> BroadcastRings::head_at(Ring& ring, std::uint64_t position) const {
  CallBytes head;
  std::memcpy(head.data(), at(ring, position), head.size());
  return decode_call(head);
}

bool BroadcastRings::has(std::uint32_t root_place, const Call& call) {
  const auto ring = reach(root_place);
  if (!ring || *ring == nullptr) return false;
  const std::uint64_t position = ways_[root_place].position;
  if ((*ring)->written.load(std::memory_order_acquire) <= position) return false;
  const auto given = head_at(**ring, position);
  return given && *given == call;
}

// ---- Waiting ----------------------------------------------------------------------------------------------

template <class Ready>
Result<> BroadcastRings::await(LocalGroup::RingBell& bell, Ready&& ready, const Call& call,
                               const Deadline& deadline) {
  const auto is_over = [&] { return ready() || group_.aborted(); };
  if (short_wait_.until(is_over, [this] { group_.look_at_cores(); }) && ready()) return {};
  const TimePoint start = group_.clock().now();
  std::optional<std::uint32_t> rung;
  for (;;) {
    const std::uint32_t seen = bell.rung.load();
    const Duration sleep = rung == seen ? wait_slice : first_sleep;
    rung = seen;
    bell.sleeping.store(1);
    const Duration left = deadline() - group_.clock().now();
    if (!ready() && !group_.aborted() && left > Duration::zero())
      net::futex_wait(bell.rung, seen, std::min(left, sleep));
    if (ready()) return {};
    look_while_waiting();
    const bool is_aborted = group_.aborted();
    if (ready()) return {};  // what a rank did before it left counts
    if (is_aborted) return fail(group_.abort_reason());
    MUSTER_TRY_VOID(check(call));
    if (left > Duration::zero()) continue;
    const std::chrono::duration<double> waited = group_.clock().now() - start;
    return fail(Code::timeout, fmt::format("{} waited {:.3g} s for rank {}", to_string(call), waited.count(),
                                           fmt::join(missing_ranks(), ", rank ")));
  }
}

std::vector<std::uint32_t> BroadcastRings::missing_ranks() const {
  std::vector<std::uint32_t> missing;
  if (const std::uint32_t root = awaited_root_.load(std::memory_order_relaxed); root != no_root)
    missing.push_back(group_.ranks()[root]);
  if (!awaits_room_.load(std::memory_order_relaxed)) return missing;
  const Ring& ring = *own_.load(std::memory_order_relaxed);
  const std::uint64_t awaited = ring.awaited.load(std::memory_order_relaxed);
  for (std::uint32_t place = 0; place < group_.size(); ++place)
    if (place != group_.local_rank() && ring.reader(place).read.load(std::memory_order_relaxed) < awaited)
      missing.push_back(group_.ranks()[place]);
  return missing;
}

// ---- Calls that do not match ------------------------------------------------------------------------------

// What a rank finds next in a ring.
std::optional<Call> BroadcastRings::unread(std::uint32_t reader, std::uint32_t root) {
  const auto ring = reach(root);
  if (!ring || *ring == nullptr) return {};
  const std::uint64_t position = (*ring)->reader(reader).read.load(std::memory_order_acquire);
  if ((*ring)->written.load(std::memory_order_acquire) <= position) return {};
  const auto given = head_at(**ring, position);
  if (!given) return {};
  return *given;
}

// Who is in `call` has read all that came before it, and is at the head of an entry of each ring but the one
// for which it waits.
Result<> BroadcastRings::check_unread(std::uint32_t reader, const Call& call) {
  const auto& ranks = group_.ranks();
  for (std::uint32_t root = 0; root < group_.size(); ++root) {
    if (root == reader || root == awaited_root_.load(std::memory_order_relaxed)) continue;
    const auto given = unread(reader, root);
    if (!given || given->number > call.number || *given == call) continue;
    if (given->number == call.number) return fail(mismatch(ranks[reader], call, ranks[root], *given));
    if (const auto other = unread(root, reader); other && other->number == given->number)
      return fail(mismatch(ranks[reader], *other, ranks[root], *given));
    return fail(Code::invalid_argument,
                fmt::format("rank {} called {}, but rank {} did not, and went on to {}", ranks[root],
                            to_string(*given), ranks[reader], to_string(call)));
  }
  return {};
}

Result<> BroadcastRings::check(const Call& call) {
  const std::uint32_t own = group_.local_rank();
  for (std::uint32_t place = 0; place < group_.size(); ++place) {
    const auto theirs = group_.current_call(place);
    if (place != own && theirs && theirs->number == call.number && !(*theirs == call))
      return fail(mismatch(group_.ranks()[own], call, group_.ranks()[place], *theirs));
  }
  return check_unread(own, call);
}

Result<> BroadcastRings::check_all() {
  for (std::uint32_t place = 0; place < group_.size(); ++place)
    if (const auto call = group_.current_call(place)) MUSTER_TRY_VOID(check_unread(place, *call));
  return {};
}

}  // namespace muster::collective
