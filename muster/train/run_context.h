// What graphs need of this process's part in the job.
#pragma once

#include "muster/graph/graph.h"

namespace muster::train {

// Seed, threads and, in a cluster, the communicator over all workers. Cheap; ask again for each run.
graph::RunContext run_context();

}  // namespace muster::train
