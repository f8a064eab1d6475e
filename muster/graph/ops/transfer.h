// Private to graph: the nodes by which the workers of a divided graph exchange values. The pass that divides
// makes them, so they are no rows of the table.
#pragma once

#include <cstdint>
#include <string>

#include "muster/graph/nodes.h"

namespace muster::graph {

// Sends its inputs to worker `peer`, as one message; no outputs.
const Op& send_op();
// Receives its outputs from worker `peer`; no inputs.
const Op& receive_op();

// `what` is said when it fails: "%12 float32 (32, 6, 14, 14) of LeNet 'conv1', lenet.py:31".
Attributes transfer_attributes(std::uint32_t peer, std::string what);

}  // namespace muster::graph
