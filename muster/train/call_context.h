// Private to train: context of an op or a cell that is called by itself.
#pragma once

#include "muster/graph/graph.h"

namespace muster::train {

// run_context(), but it forms no group of workers: one worker may call an op that the others do not call.
Result<graph::RunContext> call_context();

}  // namespace muster::train
