// Random streams of ops that run outside any graph.
#pragma once

#include <cstdint>

namespace muster::graph {

// This thread's random ops outside any graph draw from the stream `first` on: from 0 after set_seed, from one
// that its step alone decides in the body of a loop.
void begin_random_streams(std::int64_t first = 0);

}  // namespace muster::graph
