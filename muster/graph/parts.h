// Parts: how a placed network is divided over workers, for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/graph/type.h"

namespace muster::graph {

// What one worker does in a run.
struct Part {
  std::uint32_t rank = 0;
  std::vector<std::string> placed = {};      // what was placed here, in the order of the program
  std::vector<std::string> parameters = {};  // that live here
  std::size_t nodes = 0;
  double flops = 0;                   // where the rows of ops count them
  std::size_t parameters_bytes = 0;   // of the parameters, the state of optimizers among them
  std::size_t activations_bytes = 0;  // of all values made here
};

// A value on its way from the worker that has it to one that needs it.
struct ValueTransfer {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::string what;  // "%12 of LeNet 'conv1', lenet.py:31", "parameter 'fc.weight'", "input 1"
  TensorType type;
  std::size_t message = 0;  // crossings with the same number travel together; messages go in this order
};

// The same on all workers.
struct Parts {
  std::string name;          // of the function
  std::uint32_t reader = 0;  // whose inputs count
  std::vector<Part> parts = {};
  std::vector<ValueTransfer> value_transfers = {};
  std::uint64_t fingerprint = 0;  // of the whole graph, its placement and this division

  std::size_t value_transfer_bytes() const;
};

}  // namespace muster::graph
