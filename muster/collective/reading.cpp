// Large pieces between the ranks of one host, read where they lie: one copy, where slots take two.
// docs/adr/0046-pieces.md.
#include <algorithm>

#include "muster/collective/group_communicator.h"

namespace muster::collective {
namespace {

// Shorter pieces go through slots: the system looks up each page that it reads.
constexpr std::size_t read_least_bytes = 64 << 10;

}  // namespace

// Followed by where its pieces lie: by destination, or of the one for all.
struct GroupCommunicator::Told {
  enum class LetsRead : std::uint64_t { no, yes, never };

  LetsRead lets_read;
  ReadingTrial::Times times;

  std::uint64_t* addresses() { return reinterpret_cast<std::uint64_t*>(this + 1); }
};

GroupCommunicator::Told* GroupCommunicator::told_by(std::uint32_t from, std::uint64_t turn) const {
  return reinterpret_cast<Told*>(local_->slot(layout_.place_of(from), turn));
}

// The same on every rank: what a rank could not read all of them know since the end of that call.
bool GroupCommunicator::may_read_pieces(std::size_t longest) const {
  return longest >= read_least_bytes && local_ && layout_.has_one_host() &&
         sizeof(Told) + size() * sizeof(std::uint64_t) <= sizes_.chunk_size_bytes &&
         !local_->refuses_reading();
}

Result<> GroupCommunicator::move_pieces(const Routes& routes, const Call& call,
                                        const std::function<Result<>()>& through_slots) {
  ReadingTrial& trial = reading_choice_.of(call.kind, routes.longest);
  Duration took{};
  const bool reads = trial.reads();
  {
    const Stopwatch watch(origin_.clock, took, !trial.is_decided());
    if (reads) {
      MUSTER_TRY(const bool are_read, read_pieces(routes, call, trial));
      if (!are_read) return through_slots();
    } else {
      MUSTER_TRY_VOID(through_slots());
    }
  }
  trial.record(reads, took);
  return {};
}

// Each rank tells in its slot where its pieces lie, and reads the others'. The second sync keeps them as they
// are until all are read. False, on every rank, where one may not be read.
Result<bool> GroupCommunicator::read_pieces(const Routes& routes, const Call& call, ReadingTrial& trial) {
  const std::uint64_t turn = next_turn();
  Told& told = *told_by(rank(), turn);
  using enum Told::LetsRead;
  told = {.lets_read = !origin_.reads_neighbours  ? never
                       : lets_others_read(routes) ? yes
                                                  : no,
          .times = trial.best()};
  for (std::size_t to = 0; to < routes.in.size(); ++to)
    told.addresses()[to] = reinterpret_cast<std::uint64_t>(routes.in[to].data());
  MUSTER_TRY_VOID(sync(call));
  for (std::uint32_t from = 0; from < size(); ++from) {
    const Told::LetsRead lets_read = told_by(from, turn)->lets_read;
    if (lets_read == never) local_->refuse_reading();  // on every rank, before it looks next
    if (lets_read != yes) return false;
  }
  if (trial.is_due()) decide(trial, turn);
  if (!read_all(routes, turn)) local_->refuse_reading();
  MUSTER_TRY_VOID(sync(call));
  return !local_->refuses_reading();
}

void GroupCommunicator::decide(ReadingTrial& trial, std::uint64_t turn) const {
  ReadingTrial::Times slowest{};
  for (std::uint32_t from = 0; from < size(); ++from)
    for (std::size_t way = 0; way < slowest.size(); ++way)
      slowest[way] = std::max(slowest[way], told_by(from, turn)->times[way]);
  trial.decide(slowest);
}

// Not where what comes is written over what others have still to read: all ranks begin with another one.
bool GroupCommunicator::lets_others_read(const Routes& routes) const {
  const std::byte *begin = nullptr, *end = nullptr;  // of what is sent, with what lies between
  for (std::uint32_t to = 0; to < size(); ++to) {
    if (to == rank() || routes.size(rank(), to) == 0) continue;
    const std::span<const std::byte> piece = routes.in[routes.one_for_all ? 0 : to];
    begin = begin == nullptr ? piece.data() : std::min(begin, piece.data());
    end = std::max(end, piece.data() + piece.size());
  }
  for (std::uint32_t from = 0; from < size(); ++from) {
    if (from == rank() || routes.size(from, rank()) == 0) continue;
    const std::span<const std::byte> place = routes.out[from];
    if (begin < place.data() + place.size() && place.data() < end) return false;
  }
  return true;
}

bool GroupCommunicator::read_all(const Routes& routes, std::uint64_t turn) {
  for (std::uint32_t i = 0; i < size(); ++i) {
    const std::uint32_t from = (rank() + i) % size();
    const std::size_t bytes = routes.size(from, rank());
    if (bytes == 0) continue;
    std::byte* const to = routes.out[from].data();
    if (from == rank()) {
      if (routes.sent(rank()) != to) copy(to, routes.sent(rank()), bytes, Stores::cached);
      continue;
    }
    const std::uint64_t address = told_by(from, turn)->addresses()[routes.one_for_all ? 0 : rank()];
    if (!neighbour_memory_->read(layout_.place_of(from), address, {to, bytes})) return false;
  }
  return true;
}

}  // namespace muster::collective
