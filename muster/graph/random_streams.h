// Random streams of ops that run outside any graph.
#pragma once

namespace muster::graph {

// This thread's random ops outside any graph draw from the first stream again: after set_seed.
void begin_random_streams();

}  // namespace muster::graph
