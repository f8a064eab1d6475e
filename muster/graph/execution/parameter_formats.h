// Private to graph: formats of kernels in which a plan keeps parameters.
#pragma once

#include <span>
#include <vector>

#include "muster/graph/nodes.h"
#include "muster/graph/parameter.h"
#include "muster/tensor/kernels.h"

namespace muster::graph {

// The ways from row-major order to `format` and back, which keep every bit. It has no padding: it is as large
// as row-major order.
struct ParameterFormat {
  FormatPtr format;
  PrimitivePtr from_plain;
  PrimitivePtr to_plain;
  int threads = 1;  // that the two were made for
};

// A parameter that the graph updates, and the state of its optimizer, lie as the gradient comes: then neither
// is reordered for the update, and kernels often read the weight in the format in which they make its
// gradient. Everything else is plain: a graph that only reads a parameter (evaluation) must not fight over
// its format with the one that trains it. `gradient_formats` are those of the graph's updates, in order. By
// parameter; null: plain; empty: all are.
Result<std::vector<ParameterFormatPtr>> parameter_formats(const Graph& graph,
                                                          std::span<const FormatPtr> gradient_formats,
                                                          int threads);

}  // namespace muster::graph
