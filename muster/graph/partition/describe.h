// Private to graph: a partition in words.
#pragma once

#include <cstdint>
#include <string>

#include "muster/graph/explanation.h"
#include "muster/graph/partition/transfers.h"

namespace muster::graph {

// "input 1", "parameter 'fc.weight'", "%12 of LeNet 'conv1', lenet.py:31", "%13 (relu)".
std::string name_of(const Graph& graph, ValueId id);

// In place of output `index`, which worker `home` has and `rank` has not.
Tensor absent_output(const Graph& graph, std::size_t index, std::uint32_t home, std::uint32_t rank);
// Why worker `rank` cannot read a parameter; `origin` may be empty.
std::string absent_parameter(const Parameter& parameter, std::uint32_t home, const std::string& origin,
                             std::uint32_t rank);

Partition describe(const Graph& graph, const Places& places, const Schedule& schedule, std::uint32_t size);

}  // namespace muster::graph
