#include "muster/collective/local_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>

namespace muster::collective {
namespace {

constexpr std::size_t page_size_bytes = 4096;
constexpr std::size_t huge_page_size_bytes = 2 << 20;
constexpr std::uint32_t abort_bit = 1;  // of the generation, which counts in steps of two

std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

}  // namespace

// One line for each word that is written by many, so that they do not slow each other.
struct LocalGroup::Header {
  alignas(line_size_bytes) std::atomic<std::uint64_t> arrivals;
  alignas(line_size_bytes) std::atomic<std::uint32_t> generation;
  std::atomic<std::uint32_t> sleepers;
  std::atomic<bool> refuses_reading;
  alignas(line_size_bytes) SharedReason reason;
  RingBell ring_news, ring_room;
};

struct LocalGroup::RankLine {
  alignas(2 * line_size_bytes) std::atomic<std::uint64_t> arrived;  // syncs that this rank has reached
  SharedCall call;
  Offsets offsets;
  Process process;
  std::atomic<std::uint64_t> unmet;  // a checksum of the calls that it has ended without a sync
  std::atomic<Offset> ring;          // of its broadcasts
  std::atomic<std::uint32_t> cpu;    // 1 + where it last waited for long; 0: nowhere yet
};

// The large areas begin at huge pages.
LocalLayout::LocalLayout(const LocalShape& shape) {
  const std::size_t ranks = shape.ranks.size();
  lines = page_size_bytes;
  pairs = round_up(lines + ranks * sizeof(LocalGroup::RankLine), page_size_bytes);
  small_slots = round_up(pairs + PairMemory::size_bytes(ranks), page_size_bytes);
  small_result = small_slots + ranks * shape.small_size_bytes;
  small_raws = small_result + shape.small_size_bytes;
  slots = round_up(small_raws + shape.remote_ranks * shape.small_size_bytes, huge_page_size_bytes);
  results = slots + 2 * ranks * shape.chunk_size_bytes;
  raws = results + 2 * shape.chunk_size_bytes;
  end = round_up(raws + 2 * shape.remote_ranks * shape.raw_size_bytes, huge_page_size_bytes);
}

LocalGroup::LocalGroup(LocalShape shape, net::Segment segment, const Clock& clock)
    : clock_(clock),
      shape_(std::move(shape)),
      layout_(shape_),
      segment_(std::make_shared<const net::Segment>(std::move(segment))),
      arena_(std::make_shared<SharedArena>(segment_, shape_.local_rank, size())),
      short_wait_(shape_.ranks.size(), clock),
      core_sharing_(std::make_unique<CoreSharing>(shape_.ranks.size())) {}

Result<LocalGroup> LocalGroup::create(LocalShape shape, const Clock& clock) {
  static_assert(sizeof(Header) <= page_size_bytes);
  MUSTER_TRY(net::Segment segment,
             net::Segment::create(LocalLayout(shape).end, arena_bytes(shape.ranks.size())));
  LocalGroup made(std::move(shape), std::move(segment), clock);
  new (made.segment_->data()) Header{};
  for (std::uint32_t r = 0; r < made.size(); ++r) new (&made.line(r)) RankLine{};
  made.pairs().lay_out();
  return made;
}

Result<LocalGroup> LocalGroup::open(LocalShape shape, net::ProcessDescriptor fd, const Clock& clock) {
  MUSTER_TRY(net::Segment segment,
             net::Segment::open(std::move(fd), LocalLayout(shape).end, arena_bytes(shape.ranks.size())));
  return LocalGroup(std::move(shape), std::move(segment), clock);
}

std::uint32_t LocalGroup::place_of(std::uint32_t rank) const {
  const auto found = std::ranges::lower_bound(shape_.ranks, rank);
  if (found == shape_.ranks.end() || *found != rank) return size();
  return static_cast<std::uint32_t>(found - shape_.ranks.begin());
}

LocalGroup::Header& LocalGroup::header() const {
  return *std::launder(reinterpret_cast<Header*>(segment_->data()));
}
LocalGroup::RankLine& LocalGroup::line(std::uint32_t local_rank) const {
  std::byte* place = segment_->data() + layout_.lines + local_rank * sizeof(RankLine);
  return *std::launder(reinterpret_cast<RankLine*>(place));
}
std::byte* LocalGroup::small_slot(std::uint32_t local_rank) const {
  return segment_->data() + layout_.small_slots + local_rank * shape_.small_size_bytes;
}
std::byte* LocalGroup::small_result() const { return segment_->data() + layout_.small_result; }
std::byte* LocalGroup::small_raw(std::uint32_t remote_index) const {
  return segment_->data() + layout_.small_raws + remote_index * shape_.small_size_bytes;
}
std::byte* LocalGroup::slot(std::uint32_t local_rank, std::uint64_t turn) const {
  return segment_->data() + layout_.slots + (2 * local_rank + turn % 2) * shape_.chunk_size_bytes;
}
std::byte* LocalGroup::result(std::uint64_t turn) const {
  return segment_->data() + layout_.results + turn % 2 * shape_.chunk_size_bytes;
}
std::byte* LocalGroup::raw(std::uint32_t remote_index, std::uint64_t turn) const {
  const std::size_t index = turn % 2 * shape_.remote_ranks + remote_index;
  return segment_->data() + layout_.raws + index * shape_.raw_size_bytes;
}

void LocalGroup::announce(const Call& call, const Offsets& offsets) {
  line(local_rank()).call.store(call);
  line(local_rank()).offsets = offsets;
}
std::optional<Call> LocalGroup::current_call(std::uint32_t local_rank) const {
  return line(local_rank).call.load();
}
const Offsets& LocalGroup::offsets(std::uint32_t local_rank) const { return line(local_rank).offsets; }

void LocalGroup::introduce(const Process& process) { line(local_rank()).process = process; }
const LocalGroup::Process& LocalGroup::process_of(std::uint32_t local_rank) const {
  return line(local_rank).process;
}
void LocalGroup::refuse_reading() { header().refuses_reading.store(true, std::memory_order_relaxed); }
bool LocalGroup::refuses_reading() const { return header().refuses_reading.load(std::memory_order_relaxed); }

bool LocalGroup::arrive() {
  ++syncs_;
  line(local_rank()).arrived.store(syncs_, std::memory_order_relaxed);
  return header().arrivals.fetch_add(1, std::memory_order_acq_rel) + 1 == syncs_ * size();
}

void LocalGroup::release() {
  Header& shared = header();
  // Sequentially consistent with the sleepers' count: either we see the sleeper, or it sees the generation.
  shared.generation.fetch_add(2);
  if (shared.sleepers.load() != 0) net::futex_wake_all(shared.generation);
}

bool LocalGroup::released() const {
  return (header().generation.load(std::memory_order_acquire) & ~abort_bit) == generation_released();
}

bool LocalGroup::is_flagged() const {
  return (header().generation.load(std::memory_order_acquire) & abort_bit) != 0;
}

// A rank that ends the group gives the reason before it raises the flag.
bool LocalGroup::aborted() const { return is_flagged() || reason().is_claimed(); }

bool LocalGroup::released_soon() const {
  short_wait_.until([this] { return released() || is_flagged(); }, [this] { look_at_cores(); });
  return released();
}

// Of two ranks that share a core the later one moves.
void LocalGroup::look_at_cores() const {
  if (!core_sharing_->is_possible()) return;
  const std::uint32_t cpu = CoreSharing::own_cpu();
  line(local_rank()).cpu.store(cpu + 1, std::memory_order_relaxed);
  const auto has_rank = [&](std::uint32_t wanted, std::uint32_t until) {
    for (std::uint32_t r = 0; r < until; ++r)
      if (r != local_rank() && line(r).cpu.load(std::memory_order_relaxed) == wanted + 1) return true;
    return false;
  };
  core_sharing_->look(cpu, has_rank(cpu, local_rank()),
                      [&](std::uint32_t other) { return has_rank(other, size()); });
}

Result<> LocalGroup::wait_long(const Call& call, const Checks& checks, TimePoint deadline) {
  Header& shared = header();
  const TimePoint start = clock_.now();
  for (;;) {
    shared.sleepers.fetch_add(1);
    const std::uint32_t seen = shared.generation.load();
    const bool wait = (seen & ~abort_bit) != generation_released() && (seen & abort_bit) == 0;
    const Duration left = deadline - clock_.now();
    if (wait && left > Duration::zero()) net::futex_wait(shared.generation, seen, std::min(left, wait_slice));
    shared.sleepers.fetch_sub(1);
    if (released()) return {};
    look_while_waiting();
    const bool is_over = aborted();
    if (released()) return {};  // a rank leaves behind its call, which was everybody's
    if (is_over) return fail(abort_reason());
    MUSTER_TRY_VOID(checks.own(call));
    if (left <= Duration::zero()) {
      const std::chrono::duration<double> waited = clock_.now() - start;
      return fail(Code::timeout, fmt::format("{} waited {:.3g} s for rank {}", to_string(call),
                                             waited.count(), fmt::join(missing_ranks(), ", rank ")));
    }
  }
}

std::vector<std::uint32_t> LocalGroup::missing_ranks() const {
  const std::uint64_t own = line(local_rank()).arrived.load(std::memory_order_relaxed);
  std::vector<std::uint32_t> missing;
  for (std::uint32_t r = 0; r < size(); ++r)
    if (line(r).arrived.load(std::memory_order_relaxed) < own) missing.push_back(shape_.ranks[r]);
  return missing;
}

Result<> LocalGroup::compare_calls(const Call& call, const Checks& checks) const {
  const std::uint64_t unmet = line(local_rank()).unmet.load(std::memory_order_relaxed);
  for (std::uint32_t r = 0; r < size(); ++r) {
    const Call theirs = line(r).call.load().value_or(Call{});
    const bool met_alike = line(r).unmet.load(std::memory_order_relaxed) == unmet;
    if (theirs == call && met_alike) continue;
    if (theirs.number != call.number || !met_alike) MUSTER_TRY_VOID(checks.all());
    if (!(theirs == call)) return fail(mismatch(shape_.ranks[local_rank()], call, shape_.ranks[r], theirs));
    return fail(Code::invalid_argument,
                fmt::format("rank {} and rank {} have called other broadcasts before {}",
                            shape_.ranks[local_rank()], shape_.ranks[r], to_string(call)));
  }
  return {};
}

void LocalGroup::note_unmet(const Call& call) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  std::atomic<std::uint64_t>& unmet = line(local_rank()).unmet;
  const std::uint64_t before = unmet.load(std::memory_order_relaxed);
  unmet.store(((before + call.number) * odd + call.count) * odd + call.root, std::memory_order_relaxed);
}

void LocalGroup::tell_ring(Offset offset) { line(local_rank()).ring.store(offset); }
Offset LocalGroup::ring_of(std::uint32_t local_rank) const { return line(local_rank).ring.load(); }
LocalGroup::RingBell& LocalGroup::ring_news() const { return header().ring_news; }
LocalGroup::RingBell& LocalGroup::ring_room() const { return header().ring_room; }

void LocalGroup::abort(const Error& reason) {
  Header& shared = header();
  shared.reason.give(reason);
  shared.generation.fetch_or(abort_bit);  // even if another was first: it may have been killed before it did
  net::futex_wake_all(shared.generation);
  for (RingBell* const bell : {&shared.ring_news, &shared.ring_room}) {
    bell->rung.fetch_add(1);
    net::futex_wake_all(bell->rung);
  }
}

SharedReason& LocalGroup::reason() const { return header().reason; }
Error LocalGroup::abort_reason() const { return reason().get(clock_); }

}  // namespace muster::collective
