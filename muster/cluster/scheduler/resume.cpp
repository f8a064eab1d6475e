#include "muster/cluster/scheduler/resume.h"

#include <algorithm>

#include "muster/cluster/scheduler/job.h"
#include "muster/cluster/scheduler/recovering.h"
#include "muster/cluster/scheduler/running.h"

namespace muster::cluster {
namespace {

// All processes have ended with the job.
void resume_ended(Job& job) {
  job.stuck.begin_epoch();
  job.enter(std::make_unique<Recovering>(job));
  for (Seat& seat : job.seats.all()) {
    seat.member.has_left = false;
    seat.how = "it ended with the job";
    seat.variable = "MS_TOPO_TIMEOUT";
    seat.wait_until = job.now + job.config.topo_timeout;
  }
}

void resume_running(Job& job, const SavedJob& saved) {
  job.enter(std::make_unique<Running>(job));
  for (Seat& seat : job.seats.all()) {
    const record::Left its{seat.member.role, seat.member.rank};
    if (std::ranges::find(saved.left, its) != saved.left.end() && !seat.member.has_left) {
      seat.member.has_left = true;
      if (seat.member.role == Role::worker) job.ledger.left_in_epoch = seat.member.rank;
    }
    if (!seat.member.has_left)
      job.liveness.expect(seat);
    else if (seat.member.role == Role::worker)
      ++job.ledger.workers_left;
  }
  if (job.ledger.workers_left == job.config.worker_num) job.end();
}

}  // namespace

void resume(Job& job, const SavedJob& saved) {
  job.take_roster(saved.roster);
  job.seats = Seats(*saved.roster, saved.keys);
  job.ledger.finished_calls = saved.finished_calls;
  job.ledger.has_points = saved.has_points;
  job.ledger.epoch_min = saved.epoch_min;
  if (saved.failure)
    resume_ended(job);
  else
    resume_running(job, saved);
}

}  // namespace muster::cluster
