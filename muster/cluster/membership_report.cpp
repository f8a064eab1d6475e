#include "muster/cluster/membership_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::cluster {

const FoundJob* MembershipReport::find(std::uint64_t job_id) const {
  const auto job = std::ranges::find(found, job_id, &FoundJob::job_id);
  return job == found.end() ? nullptr : &*job;
}

std::string describe(const FoundJob& job) {
  return fmt::format("job {:016x} of {} worker{}, newest {}, in {}{}", job.job_id, job.worker_num,
                     job.worker_num == 1 ? "" : "s", job.newest, job.folder,
                     job.is_in_use ? " (in use)" : "");
}

}  // namespace muster::cluster
