#include "muster/cluster/scheduler/slow_report.h"

#include "muster/cluster/scheduler/job.h"

namespace muster::cluster {
namespace {

constexpr Duration time_between_looks_at_all =
    std::chrono::milliseconds(250);  // of thousands, each says twice a second

}  // namespace

void SlowReport::note(Peer& peer, const message::Beat& beat, std::uint64_t epoch) {
  if (!beat.stats) return;
  peer.said.stats = beat.stats;
  peer.said.pace.add(job_.now, beat.step == no_step ? 0 : beat.step, beat.stats->counters);
  if (!job_.is(JobState::running) || epoch != job_.ledger.epoch || job_.now < next_look_) return;
  next_look_ = job_.now + time_between_looks_at_all;
  look();
}

// Once they are all at work, and until the first has left.
void SlowReport::look() {
  std::vector<SlowWatch::Worker> workers;
  for (const auto& [id, peer] : job_.peers)
    if (peer.member.role == Role::worker && !peer.has_left() && peer.has_rank && peer.said.stats &&
        peer.said.step != no_step)
      workers.push_back({peer.member.rank, peer.said.step, &*peer.said.stats});
  if (workers.size() != job_.wanted(Role::worker)) return watch_.clear();
  for (const SlowRank& slow : watch_.look(workers, job_.now))
    if (told_.emplace(slow.rank, slow.cause).second) job_.log(log::Level::warning, to_string(slow));
}

}  // namespace muster::cluster
