// Host index in a pod of an Indexed Job: its completion index.
#pragma once

#include "muster/launch/settings/job_settings.h"

namespace muster::launch {

// Empty where `asked` (flags and job file) speaks of one host: then the pods of a Job are jobs of their own.
Result<PartialSettings> kubernetes_settings(const Environment& environment, const PartialSettings& asked);

}  // namespace muster::launch
