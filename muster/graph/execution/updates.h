// Private to graph: the updates of all parameters as one pass, so that many small parameters cost one
// parallel loop.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "muster/graph/execution/execute.h"
#include "muster/graph/nodes.h"

namespace muster::graph {

// An update of a parameter that can be done in parts.
bool is_update(const Op& op);

// How many of `nodes`, from the first on, can run as one pass: they are updates by the same kernel. At
// least 1.
std::size_t joined_updates(std::span<const Node> nodes, std::span<const Chosen> chosen);

// Several updates; the settings of a call whose addresses are those of the first update's inputs and outputs,
// then the second's, and so on.
struct Updates {
  struct Part {
    std::shared_ptr<const void> settings;
    std::size_t first_address = 0;
    std::size_t inputs = 0;
  };
  Kernel kernel;
  std::vector<Part> parts;
  std::vector<std::int64_t> ends;  // of the parts' elements, counted through
};
Updates join_updates(const Graph& graph, std::span<const Node> nodes, std::span<const Chosen> chosen);

// The call has `Updates` as settings.
void run_updates(const KernelCall& call);

}  // namespace muster::graph
