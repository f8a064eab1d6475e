// Private to graph: choice of a kernel for each node, and of the format of each value between them.
#pragma once

#include <span>
#include <vector>

#include "muster/graph/execution/execute.h"
#include "muster/graph/nodes.h"

namespace muster::graph {

struct Choices {
  Graph graph;                     // with a reorder wherever a value must lie otherwise than it was made
  std::vector<Chosen> nodes;       // by node; no kernel: a view, nothing runs
  std::vector<FormatPtr> formats;  // by value
  std::vector<ParameterFormatPtr> parameter_formats;  // by parameter; null: plain
};

// Kernels see how their inputs come and may ask for another format; then a reorder goes before them. Inputs
// and outputs of the graph are plain, and so are its parameters but those that it updates: they lie as their
// gradient comes (parameter_formats.h).
// `seen_as`, by value, may be shorter: the format in which kernels see a value that is received, in place of
// the plain one in which it comes; null: as it comes.
Result<Choices> choose_kernels(const Graph& graph, int threads, std::span<const FormatPtr> seen_as = {});
// By value: in which format it would lie in a plan of this graph, fused or not; null: plain, or nowhere.
Result<std::vector<FormatPtr>> formats_in_plan(const Graph& graph, int threads);

// Of a value in `format`.
std::size_t size_bytes(const TensorType& type, const FormatPtr& format);

}  // namespace muster::graph
