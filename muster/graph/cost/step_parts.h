// Step parts: which of a plan's steps are forward and which backward, for who watches a run. Public
// for train.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/graph/run.h"

namespace muster::graph {

// forward: up to the loss of which gradients are taken; update: of a parameter behind it; backward: between
// them.
enum class StepPart : std::uint8_t { forward, backward, update };

// By step of the plan that a RunObserver is being told of; of a worker of a placed network its stage, whose
// parts of a batch go both ways in turn. Empty: the plan has no loss, as that of a function of the script's;
// or the op runs by itself.
std::vector<StepPart> parts_of_plan(const RunObserver::Step& step);

}  // namespace muster::graph
