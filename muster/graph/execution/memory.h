// Private to graph: places of values in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/graph/execution/overlap.h"
#include "muster/graph/nodes.h"

namespace muster::graph {

struct Location {
  enum class Kind { input, captured, parameter, output, bucket, arena };
  Kind kind = Kind::arena;
  std::size_t index = 0;         // of the input, captured tensor, parameter or output buffer
  std::size_t offset_bytes = 0;  // in the output buffer, the buckets or the arena
};

// An output that has no memory of its own (it is an input, or an output already) and is copied at the end.
struct OutputCopy {
  ValueId value = 0;
  std::size_t output = 0;
};

struct Layout {
  std::vector<Location> values;            // by ValueId
  std::vector<Location> outputs;           // by output: buffer and offset
  std::vector<std::size_t> buffers_bytes;  // of the output buffers
  std::size_t ranges = 0;                  // the first ones are those of contiguous outputs
  std::vector<OutputCopy> copies;
  std::vector<std::size_t> scratch_offset_bytes;  // by node, in the arena
  std::size_t arena_bytes = 0;
  std::size_t buckets_bytes = 0;  // of what nodes lay side by side
};

struct Sizes {
  std::vector<std::size_t> values_bytes;   // by ValueId, in the format in which they lie
  std::vector<std::size_t> scratch_bytes;  // by node
};
// Values share memory when their lifetimes do not meet; what a call uses lives until the call is joined. The
// outputs of nodes that lay them side by side get memory of their own, which other ranks may reach.
Layout plan_memory(const Graph& graph, const Sizes& sizes, const Overlap& overlap);

}  // namespace muster::graph
