// Muster for a C++ program: the job and its collectives, data, networks, training. What this header reaches
// is what `cmake --install` installs.
#pragma once

#include "muster/base/base.h"              // IWYU pragma: export
#include "muster/checkpoint/checkpoint.h"  // IWYU pragma: export
#include "muster/cluster/cluster.h"        // IWYU pragma: export
#include "muster/collective/collective.h"  // IWYU pragma: export
#include "muster/data/data.h"              // IWYU pragma: export
#include "muster/graph/graph.h"            // IWYU pragma: export
#include "muster/nn/nn.h"                  // IWYU pragma: export
#include "muster/tensor/tensor.h"          // IWYU pragma: export
#include "muster/train/train.h"            // IWYU pragma: export

namespace muster {
using graph::Value;
using graph::Values;
namespace ops = nn::ops;
}  // namespace muster
