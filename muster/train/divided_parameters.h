// Private to train: parameters of which each worker holds a piece: the state of an optimizer, and more, that
// data-parallel workers share (Zero, context.h), and what is divided over a mesh of workers
// (graph/ops/shard.cpp).
#pragma once

#include <optional>

#include "muster/graph/graph.h"
#include "muster/nn/nn.h"

namespace muster::train {

// As the context has it now: divides what `optimizer` updates and keeps, or makes it whole where nothing is
// shared any more. What a formula of whole parameters, or one in Python, updates stays as a mesh divides it,
// and whole otherwise; a line says so. Every worker calls it alike. An error for LARS.
Result<> divide_optimizer(const nn::Optimizer& optimizer);

// Whether a worker has the same of what is divided so, and reduces its gradients alike.
bool same_pieces(const std::optional<graph::Parameter::Share>& a,
                 const std::optional<graph::Parameter::Share>& b);

// The whole of a divided parameter. A collective call of the workers that share it.
Result<Tensor> gathered(graph::Parameter& parameter);

}  // namespace muster::train
