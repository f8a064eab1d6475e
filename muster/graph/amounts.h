// Private to graph: amounts for people, with the digits that matter.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::graph {

// "1.5 KiB", "97.5 MiB"
std::string bytes_text(std::size_t bytes);
// "20.5 GFLOP"
std::string flops_text(double flops);
// "1 node", "2 nodes"
std::string counted(std::size_t count, std::string_view what);

}  // namespace muster::graph
