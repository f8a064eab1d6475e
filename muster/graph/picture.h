// Pictures: a divided network as people read it.
#pragma once

#include <string>

#include "muster/graph/parts.h"

namespace muster::graph {

// Many lines: who reads, what each worker holds and does, and each crossing in the order of a run.
std::string to_string(const Parts& parts);

// An SVG: a column for each worker with what was placed there, and below it, in the order of a run, an arrow
// for each message with its size.
std::string to_svg(const Parts& parts);

}  // namespace muster::graph
