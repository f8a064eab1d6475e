// Private to train: divisions of a worker's parameters in its recovery points. A process that comes back has
// not traced its first step, by which a plan divides them (step_planner.h), or is behind the training.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/checkpoint/checkpoint.h"
#include "muster/graph/graph.h"

namespace muster::train {

// `names` are those of `parameters` in the point.
void put_shares(std::span<const graph::ParameterPtr> parameters, const std::vector<std::string>& names,
                checkpoint::Point& point);

// Before they are set to what the point holds: who has a piece there is divided as it was, and under a plan
// who is whole there is whole.
Result<> take_shares(const checkpoint::Point& point, std::span<const graph::ParameterPtr> parameters,
                     const std::vector<std::string>& names);

// The division is made anew, by other workers, of the whole parameters that the point holds.
void forget_shares(checkpoint::Point& point);

}  // namespace muster::train
