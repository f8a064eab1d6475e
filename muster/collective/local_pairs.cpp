#include "muster/collective/local_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::collective {
namespace {

// The other side sees so much at once: small enough that its copying goes along with ours.
constexpr std::size_t step_bytes = 16 << 10;
constexpr std::size_t at_timed = std::tuple_size_v<MessageBytes>;

using Head = std::array<std::byte, Ring::line_size_bytes>;

std::uint64_t whole_lines(std::uint64_t position) {
  return (position + Ring::line_size_bytes - 1) / Ring::line_size_bytes * Ring::line_size_bytes;
}

// As many bytes as lie in one row from `position`, of at most `limit`.
std::size_t in_a_row(std::uint64_t position, std::size_t limit) {
  return std::min({limit, step_bytes, Ring::capacity_bytes - position % Ring::capacity_bytes});
}

void ring(Bell& bell) {
  bell.rung.fetch_add(1);
  net::futex_wake_all(bell.rung);
}

}  // namespace

LocalPairs::LocalPairs(const LocalGroup& group)
    : group_(group),
      memory_(group.pairs()),
      short_wait_(group.size(), group.clock()),
      outgoing_(group.size()),
      incoming_(group.size()) {}

void LocalPairs::Copying::copy(const Clock& clock, std::byte* to, const std::byte* from,
                               std::size_t size_bytes) {
  if (!timed) return collective::copy(to, from, size_bytes, stores);
  const TimePoint start = clock.now();
  collective::copy(to, from, size_bytes, stores);
  busy += clock.now() - start;
}

// ---- Sending ----

Result<> LocalPairs::send(SentPieces pieces, Message message, const MessageWait& wait) {
  const std::uint32_t to = group_.place_of(message.to);
  Outgoing& way = outgoing_[to];
  message.number = ++way.number;
  MUSTER_TRY_VOID(check_peer(to, message));
  if (way.ring == nullptr) MUSTER_TRY_VOID(make_ring(way, to));
  begin_timing(way, message);
  Head head{};
  std::ranges::copy(encode(message), head.begin());
  head[at_timed] = static_cast<std::byte>(way.copying.timed);
  MUSTER_TRY_VOID(write(way, head, message, wait));
  for (const auto piece : pieces) MUSTER_TRY_VOID(write(way, piece, message, wait));
  way.written = whole_lines(way.written);
  publish(way, to);
  if (way.copying.timed)
    way.timed = {.number = message.number, .size_bytes = message.size_bytes, .busy = way.copying.busy};
  return {};
}

Result<std::atomic<Offset>*> LocalPairs::ring_places() {
  const std::lock_guard lock(ring_places_mutex_);
  if (ring_places_ != nullptr) return ring_places_;
  MUSTER_TRY(std::byte* const memory, group_.arena().take_for_good(ring_places_bytes(group_.size())));
  ring_places_ = std::launder(reinterpret_cast<std::atomic<Offset>*>(memory));
  memory_.seat(own_place()).rings.store(group_.arena().offset_of(memory, ring_places_bytes(group_.size())));
  return ring_places_;
}

Result<> LocalPairs::make_ring(Outgoing& way, std::uint32_t to) {
  MUSTER_TRY(std::atomic<Offset>* const places, ring_places());
  MUSTER_TRY(std::byte* const memory, group_.arena().take_for_good(Ring::size_bytes));
  way.ring = new (memory) Ring{};
  places[to].store(group_.arena().offset_of(memory, Ring::size_bytes));
  wake(to, &Seat::receiving);
  return {};
}

// Which stores are the faster ones shows in what both sides take together: the receiver tells its part, and
// until it has, nothing else is measured on this way.
void LocalPairs::begin_timing(Outgoing& way, const Message& message) {
  if (way.timed.number != 0 && way.ring->timed_number.load(std::memory_order_acquire) == way.timed.number) {
    const Duration theirs(way.ring->timed_ns.load(std::memory_order_relaxed));
    way.store_choice.record(way.timed.size_bytes, way.timed.busy + theirs);
    way.timed = {};
  }
  way.copying = {.stores = way.store_choice.next(message.size_bytes),
                 .timed = way.timed.number == 0 && way.store_choice.is_trying(message.size_bytes)};
}

Result<> LocalPairs::write(Outgoing& way, std::span<const std::byte> bytes, const Message& message,
                           const MessageWait& wait) {
  const std::uint32_t to = group_.place_of(message.to);
  Ring& ring = *way.ring;
  while (!bytes.empty()) {
    const std::uint64_t read = ring.read.load(std::memory_order_acquire);
    const std::uint64_t used = way.written - read;
    if (used > Ring::capacity_bytes) return fail(broken(message));
    if (used == Ring::capacity_bytes) {
      publish(way, to);
      MUSTER_TRY_VOID(await(
          to, &Seat::sending, [&] { return ring.read.load() != read; }, message, wait));
      continue;
    }
    const std::size_t now = in_a_row(way.written, std::min(bytes.size(), Ring::capacity_bytes - used));
    way.copying.copy(group_.clock(), ring.at(way.written), bytes.data(), now);
    way.written += now;
    bytes = bytes.subspan(now);
    ring.written.store(way.written, std::memory_order_release);
  }
  return {};
}

// Lets the other side know, awake or asleep. While it is awake that costs no system call.
void LocalPairs::publish(Outgoing& way, std::uint32_t to) {
  way.ring->written.store(way.written);
  wake(to, &Seat::receiving);
}

// ---- Receiving ----

Result<> LocalPairs::receive(ReceivedPieces pieces, Message message, const MessageWait& wait) {
  const std::uint32_t from = group_.place_of(message.from);
  Incoming& way = incoming_[from];
  message.number = ++way.number;
  if (way.ring == nullptr) MUSTER_TRY_VOID(open_ring(way, message, wait));
  way.copying = {};
  Head head;
  MUSTER_TRY_VOID(read(way, head, message, wait));
  MUSTER_TRY(const Message sent,
             decode_message(std::span(head).first<std::tuple_size_v<MessageBytes>>(), message));
  if (!(sent == message)) return fail(mismatch(sent, message));
  way.copying.timed = head[at_timed] != std::byte{0};
  for (const auto piece : pieces) MUSTER_TRY_VOID(read(way, piece, message, wait));
  way.read = whole_lines(way.read);
  if (way.copying.timed) {
    way.ring->timed_ns.store(static_cast<std::uint64_t>(std::chrono::nanoseconds(way.copying.busy).count()),
                             std::memory_order_relaxed);
    way.ring->timed_number.store(message.number, std::memory_order_release);
  }
  publish(way, from);
  return {};
}

Result<> LocalPairs::open_ring(Incoming& way, const Message& message, const MessageWait& wait) {
  const std::uint32_t from = group_.place_of(message.from);
  const std::atomic<Offset>& places = memory_.seat(from).rings;
  MUSTER_TRY_VOID(await(
      from, &Seat::receiving, [&] { return places.load() != nowhere; }, message, wait));
  MUSTER_TRY(const net::Mapping table,
             group_.arena().map_of(from, places.load(), ring_places_bytes(group_.size())));
  const std::atomic<Offset>& place =
      std::launder(reinterpret_cast<const std::atomic<Offset>*>(table.data()))[own_place()];
  MUSTER_TRY_VOID(await(
      from, &Seat::receiving, [&] { return place.load() != nowhere; }, message, wait));
  MUSTER_TRY(way.mapping, group_.arena().map_of(from, place.load(), Ring::size_bytes));
  way.ring = std::launder(reinterpret_cast<Ring*>(way.mapping.data()));
  return {};
}

Result<> LocalPairs::read(Incoming& way, std::span<std::byte> bytes, const Message& message,
                          const MessageWait& wait) {
  const std::uint32_t from = group_.place_of(message.from);
  Ring& ring = *way.ring;
  while (!bytes.empty()) {
    const std::uint64_t ready = ring.written.load(std::memory_order_acquire) - way.read;
    if (ready > Ring::capacity_bytes) return fail(broken(message));
    if (ready == 0) {
      publish(way, from);
      MUSTER_TRY_VOID(await(
          from, &Seat::receiving, [&] { return ring.written.load() != way.read; }, message, wait));
      continue;
    }
    const std::size_t now = in_a_row(way.read, std::min<std::size_t>(bytes.size(), ready));
    way.copying.copy(group_.clock(), bytes.data(), ring.at(way.read), now);
    way.read += now;
    bytes = bytes.subspan(now);
    ring.read.store(way.read, std::memory_order_release);
  }
  return {};
}

void LocalPairs::publish(Incoming& way, std::uint32_t from) {
  way.ring->read.store(way.read);
  wake(from, &Seat::sending);
}

// ---- Waiting ----

// Sequentially consistent with the bells: either we see that the other side sleeps, or it sees what we did.
void LocalPairs::wake(std::uint32_t place, Bell Seat::*bell) {
  Bell& theirs = memory_.seat(place).*bell;
  if (theirs.sleepers.load() != 0) ring(theirs);
}

template <class Ready>
Result<> LocalPairs::await(std::uint32_t place, Bell Seat::*own_bell, Ready&& ready, const Message& message,
                           const MessageWait& wait) {
  const auto is_ended = [&] { return ready() || is_over(place); };
  if (short_wait_.until(is_ended, [&] { group_.look_at_cores(); }) && ready()) return {};
  Bell& bell = memory_.seat(own_place()).*own_bell;
  for (;;) {
    bell.sleepers.fetch_add(1);
    const std::uint32_t seen = bell.rung.load();
    const Duration left = wait.deadline - group_.clock().now();
    if (!ready() && !is_over(place) && left > Duration::zero())
      net::futex_wait(bell.rung, seen, std::min(left, wait_slice));
    bell.sleepers.fetch_sub(1);
    if (ready()) return {};
    look_while_waiting();
    const auto sound = check_peer(place, message);
    if (ready()) return {};  // what a rank did before it left counts
    if (!sound) return sound;
    MUSTER_TRY_VOID(wait.look());
    if (left <= Duration::zero())
      return fail(too_late(message, wait, fmt::format("rank {}", group_.ranks()[place])));
  }
}

bool LocalPairs::is_over(std::uint32_t place) const {
  return memory_.reason().is_claimed() || memory_.seat(place).left.load() != 0;
}

Result<> LocalPairs::check_peer(std::uint32_t place, const Message& message) const {
  if (auto reason = ended()) return fail(*std::move(reason));
  const auto how = static_cast<Left>(memory_.seat(place).left.load());
  if (how == Left::no) return {};
  return fail(Code::peer_lost,
              fmt::format("rank {} {} before {}", group_.ranks()[place],
                          how == Left::lost ? "ended without leaving the group" : "left the group",
                          to_string(message)));
}

Error LocalPairs::broken(const Message& message) const {
  return {Code::corrupt,
          fmt::format("the shared memory of {} holds places that cannot be", to_string(message))};
}

// ---- The end ----

void LocalPairs::abort(const Error& reason) {
  memory_.reason().give(reason);  // the bells only hasten it: a rank may be killed before it rings them
  for (std::uint32_t place = 0; place < group_.size(); ++place)
    for (Bell* const bell : {&memory_.seat(place).receiving, &memory_.seat(place).sending})
      if (bell->sleepers.load() != 0) ring(*bell);
}

void LocalPairs::leave() { mark(own_place(), Left::by_itself); }
void LocalPairs::lose(std::uint32_t place) { mark(place, Left::lost); }

void LocalPairs::mark(std::uint32_t gone, Left how) {
  std::uint32_t there = static_cast<std::uint32_t>(Left::no);
  memory_.seat(gone).left.compare_exchange_strong(there, static_cast<std::uint32_t>(how));
  for (std::uint32_t place = 0; place < group_.size(); ++place)
    for (Bell Seat::*const bell : {&Seat::receiving, &Seat::sending}) wake(place, bell);
}

std::optional<Error> LocalPairs::ended() const {
  if (!memory_.reason().is_claimed()) return std::nullopt;
  return memory_.reason().get(group_.clock());
}

}  // namespace muster::collective
