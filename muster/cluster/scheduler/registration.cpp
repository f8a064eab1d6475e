#include "muster/cluster/scheduler/registration.h"

#include <fmt/format.h>

#include "muster/cluster/scheduler/job.h"
#include "muster/cluster/variables.h"

namespace muster::cluster {
namespace {

// Of a scheduler that came back without what its processes were started with.
std::string_view forgetful(const SchedulerConfig& config, const message::Register& request) {
  if (config.recovers || !request.recovers) return {};
  return ", and its scheduler was started without MS_ENABLE_RECOVERY=1, which remembers no job: start that "
         "one with MS_ENABLE_RECOVERY=1 and the MS_RECOVERY_PATH that it had, then this process again";
}

}  // namespace

std::optional<std::string> unusable(const SchedulerConfig& config, const message::Register& request) {
  const Member& member = request.member;
  const auto differs = [](std::string_view variable, std::uint32_t there, std::uint32_t here) {
    return fmt::format("{} is {} there and {} at the scheduler; it must be the same everywhere", variable,
                       there, here);
  };
  const auto wrong_number = [&](Role role, std::string_view variable, std::uint32_t there,
                                std::uint32_t here) {
    return fmt::format("wrong {} number: {}", to_string(role), differs(variable, there, here));
  };
  if (member.role == Role::scheduler) return "there is one scheduler, and this is it";
  if (!is_node_id(member.node_id)) return "its node id (MS_NODE_ID) is empty, too long or not printable";
  if (request.worker_num != config.worker_num)
    return wrong_number(Role::worker, "MS_WORKER_NUM", request.worker_num, config.worker_num);
  if (request.server_num != config.server_num)
    return wrong_number(Role::server, "MS_SERVER_NUM", request.server_num, config.server_num);
  if (config.recovers && request.recovers && (member.incarnation == 0 || !is_secret(request.secret)))
    return "it has no incarnation or no secret";
  if (request.recovers != config.recovers)
    return differs("MS_ENABLE_RECOVERY", request.recovers ? 1 : 0, config.recovers ? 1 : 0);
  return std::nullopt;
}

std::optional<std::string> reason_to_refuse(const Job& job, const Message& message,
                                            const message::Register& request) {
  const Member& member = request.member;
  const bool is_stale = message.job_id != job.ledger.job_id || message.epoch != job.ledger.epoch;
  if (message.job_id != 0 && is_stale)
    return fmt::format("it belongs to epoch {} of another job or another time; this is epoch {}{}",
                       message.epoch, job.ledger.epoch, forgetful(job.config, request));
  if (job.is(JobState::ended)) return job.why_ended();
  if (auto reason = unusable(job.config, request)) return reason;
  if (const Member* holder = job.phase().holder(member)) return job.phase().duplicate_id(*holder);
  return job.seating.impersonation(member, key_of(request.secret, member));
}

}  // namespace muster::cluster
