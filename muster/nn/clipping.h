// Gradients kept from growing too great.
#pragma once

#include <optional>
#include <span>

#include "muster/graph/graph.h"

namespace muster::nn {

// All times clip_norm / max(norm, clip_norm), norm the length of all together. Pascanu et al., ICML 2013.
graph::Values clip_by_global_norm(std::span<const graph::Value> values, double clip_norm = 1.0);

// All times min(max_norm / (norm + 1e-6), 1), norm the `norm_type` norm of all together: infinity for the
// greatest, else the sum of |x|^norm_type to the power 1 / norm_type.
graph::Values clip_by_norm(std::span<const graph::Value> values, double max_norm, double norm_type = 2.0);

}  // namespace muster::nn
