#include "muster/launch/settings/sources.h"

#include <fmt/format.h>

#include "muster/launch/settings/variables.h"
#include "muster/launch/settings/wrong.h"

namespace muster::launch {
namespace {

constexpr auto count_max = static_cast<std::int64_t>(hosts_max);

// "job-worker-0.job", as such a platform names the containers of a task.
std::vector<HostSlots> names_of_task(const std::string& job, const std::string& task, std::int64_t count) {
  std::vector<HostSlots> hosts;
  for (std::int64_t i = 0; i < count; ++i)
    hosts.push_back({.name = fmt::format("{}-{}-{}.{}", job, task, i, job)});
  return hosts;
}

Result<PartialSettings::Said<std::vector<HostSlots>>> hosts_of(const Environment& environment,
                                                               const SaidNumber& count) {
  using Said = PartialSettings::Said<std::vector<HostSlots>>;
  if (const auto list = first_of(environment, {"VC_WORKER_HOSTS"})) {
    auto hosts = parse_hosts(list->value);
    if (!hosts) return wrong(fmt::format("VC_WORKER_HOSTS: {}", hosts.error().message));
    if (count && count->value != static_cast<std::int64_t>(hosts->size()))
      return wrong(fmt::format("VC_WORKER_HOSTS names {} hosts, and {}={}", hosts->size(), count->origin,
                               count->value));
    return Said{{*std::move(hosts), list->origin}};
  }
  const auto job = first_of(environment, {"MA_VJ_NAME"});
  const auto task = first_of(environment, {"MA_TASK_NAME"});
  if (!count || count->value == 1 || !job || !task) return Said{};
  return Said{{names_of_task(job->value, task->value, count->value), "MA_VJ_NAME and MA_TASK_NAME"}};
}

}  // namespace

Result<PartialSettings> platform_settings(const Environment& environment) {
  PartialSettings said;
  MUSTER_TRY(said.host_count, number(environment, {"MA_NUM_HOSTS"}, 1, count_max));
  MUSTER_TRY(said.slots, number(environment, {"MY_MPI_SLOTS", "MA_NUM_GPUS"}, 0, count_max));
  if (said.slots && said.slots->value == 0) said.slots.reset();  // a host without accelerators
  MUSTER_TRY(said.hosts, hosts_of(environment, said.host_count));
  MUSTER_TRY(said.self,
             number(environment, {"MA_TASK_INDEX", "VC_TASK_INDEX", "VK_TASK_INDEX"}, 0, count_max));
  if (!said.hosts && !said.host_count) said.self.reset();  // of a job whose hosts are not named
  const auto count = said.hosts ? static_cast<std::int64_t>(said.hosts->value.size())
                                : (said.host_count ? said.host_count->value : 0);
  if (count > 1) {
    if (!said.self)
      return wrong(
          "the platform's variables name several hosts, but not which of them this is: set MA_TASK_INDEX, "
          "VC_TASK_INDEX or VK_TASK_INDEX");
    said.reach = Setting<Reach>{Reach::each, said.self->origin};
  }
  return said;
}

}  // namespace muster::launch
