// Private to graph: memory for what a group reduces.
#pragma once

#include <cstddef>
#include <memory>

#include "muster/base/base.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {

// Memory in which `communicator` reduces with fewer copies, or any where it has none left; null: any.
std::shared_ptr<Buffer> buffer_of(Communicator* communicator, std::size_t size_bytes);

}  // namespace muster::graph
