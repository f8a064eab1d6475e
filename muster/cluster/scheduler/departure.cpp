#include "muster/cluster/scheduler/departure.h"

#include <algorithm>

#include "muster/cluster/scheduler/job.h"

namespace muster::cluster {
namespace {

// Whether the folder of a worker lacks the end of a call that is over: should it die, only the memory of
// others has that. Who comes new may have lost its folder, until it says what is there; of a vacant seat of
// which nothing was said, no one waits for the next process.
bool lacks_ends(const Job& job, const Seat& seat) {
  const std::uint64_t finished = job.ledger.finished_calls;
  if (seat.member.role != Role::worker || seat.member.has_left || seat.is_unknown) return false;
  if (seat.peer == 0) return seat.kept_calls.value_or(finished) < finished;
  const auto& progress = job.peers.at(seat.peer).said.progress;
  return (progress ? progress->kept_calls : 0) < finished;
}

}  // namespace

// Who has the ends leaves after those who lack them. Of those, none waits for another that is done as well.
std::optional<std::uint32_t> who_may_need(const Job& job, PeerId id) {
  if (job.ledger.finished_calls == 0) return std::nullopt;
  const auto& seats = job.seats.all();
  const bool lacks_itself =
      std::ranges::any_of(seats, [&](const Seat& seat) { return seat.peer == id && lacks_ends(job, seat); });
  for (const Seat& seat : seats) {
    if (seat.peer == id || !lacks_ends(job, seat)) continue;
    if (lacks_itself && seat.peer != 0 && job.peers.at(seat.peer).said.asks_to_leave) continue;
    return seat.member.rank;
  }
  return std::nullopt;
}

}  // namespace muster::cluster
