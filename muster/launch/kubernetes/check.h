// Checks of a Kubernetes job before anything is made from it.
#pragma once

#include "muster/base/base.h"
#include "muster/launch/kubernetes/job.h"

namespace muster::launch::kubernetes {

Result<> check(const Job& job);

}  // namespace muster::launch::kubernetes
