#include "muster/launch/settings/sources.h"

#include "muster/launch/settings/variables.h"

namespace muster::launch {

Result<PartialSettings> kubernetes_settings(const Environment& environment, const PartialSettings& asked) {
  PartialSettings said;
  if (!asked.host_count || asked.host_count->value < 2) return said;
  MUSTER_TRY(said.self,
             number(environment, {"JOB_COMPLETION_INDEX"}, 0, static_cast<std::int64_t>(hosts_max)));
  return said;
}

}  // namespace muster::launch
