#include "muster/cluster/scheduler/slow_report.h"

#include <set>
#include <string_view>

#include "muster/cluster/scheduler/job.h"

namespace muster::cluster {

void SlowReport::note(Peer& peer, const message::Beat& beat, std::uint64_t epoch) {
  if (!beat.stats) return;
  peer.said.stats = beat.stats;
  peer.said.stats->marks.clear();
  peer.said.pace.add(job_.now, beat.step == no_step ? 0 : beat.step, beat.stats->counters);
  const bool is_at_work = peer.member.role == Role::worker && peer.has_rank && beat.step != no_step;
  if (!is_at_work || !job_.is(JobState::running) || epoch != job_.ledger.epoch) return;
  watch_.hear(peer.member.rank, *beat.stats);
  if (watch_.has_heard(job_.wanted(Role::worker))) look();
}

void SlowReport::look() {
  std::set<std::string_view> hosts;
  for (const auto& [id, peer] : job_.peers)
    if (peer.member.role == Role::worker) hosts.insert(host_of(peer.member));
  for (const SlowRank& slow : watch_.look(hosts.size() > 1))
    if (told_.emplace(slow.rank, slow.cause).second) job_.log(log::Level::warning, to_string(slow));
}

}  // namespace muster::cluster
