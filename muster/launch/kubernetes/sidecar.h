// A scheduler as a side container of a pod.
//
// Kubernetes starts a side container again whenever it ends, and tells it to end (SIGTERM) as soon as the
// pod's workers have, while workers of other pods may still need it. So what runs here is not told, and when
// it has ended well, this process stays until it is told.
#pragma once

#include <string>
#include <vector>

#include "muster/base/base.h"

namespace muster::launch::kubernetes {

// Runs the command and returns its exit code (128 + the signal that killed it): at once when it is not 0,
// else after SIGTERM or SIGINT. Also the parent of orphans, as the first process of a container has to be.
// For a process of one thread.
Result<int> run_sidecar(const std::vector<std::string>& command);

}  // namespace muster::launch::kubernetes
