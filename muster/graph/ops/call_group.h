// Private to graph: the group of a collective op, which its attribute `group` names; without one, all
// workers.
#pragma once

#include <string>

#include "muster/graph/kernel.h"

namespace muster::graph {

struct CallGroup {
  std::string name;        // "": all workers
  std::int64_t ranks = 1;  // that the op was made for
};
CallGroup call_group(const Attributes& attributes);

// Null for a group of one.
Result<Communicator*> find_group(const CallGroup& group, const KernelCall& call);

}  // namespace muster::graph
