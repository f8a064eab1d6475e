// Explanation: what a plan is made of and how it is divided over workers, for people: `muster explain`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/graph/function.h"
#include "muster/graph/layout.h"
#include "muster/graph/value.h"

namespace muster::graph {

// One kernel call of a plan.
struct PlanStep {
  std::string_view op;
  std::string_view kernel;
  std::string result;     // the type of its first output; empty: it gives none
  std::string format;     // in which that lies; empty: plain
  double flops = 0;       // a multiply-add counts as two; 0 where the row of the op does not count
  std::size_t bytes = 0;  // of what it reads and writes
};

// What one worker does in a run of a placed network.
struct Stage {
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
  std::size_t message = 0;  // transfers with the same number travel together; messages go in this order
};

// Collective calls of one kind, among as many workers.
struct CallsOfKind {
  std::string_view op;
  std::int64_t ranks = 0;  // 0: all workers
  std::size_t calls = 0;
  std::size_t bytes = 0;  // what a worker gives to them, together
  // What a worker sends then, where the number of ranks is known: each sends to each what that one needs.
  std::size_t sent_bytes() const;
};

// What a worker holds for the updates of its parameters.
struct TrainingMemory {
  std::size_t updated_bytes = 0;    // of the parameters that are updated, or its pieces of them
  std::size_t gradients_bytes = 0;  // as the updates read them
  std::size_t states_bytes = 0;     // of the optimizer
};

// How a placed network is divided over workers. The same on all of them.
struct Partition {
  std::string name;          // of the function
  std::uint32_t reader = 0;  // whose inputs count
  std::vector<Stage> stages = {};
  std::vector<ValueTransfer> value_transfers = {};
  std::uint64_t fingerprint = 0;  // of the whole graph, its placement and this partition

  std::size_t value_transfer_bytes() const;
};

// How a plan is divided over a mesh, or its updates over all workers (ZeRO).
struct MeshPlan {
  struct Held {
    std::string name;  // of a parameter
    TensorType type;   // of the whole
    TensorLayout layout;
  };
  // Of one kind, between ranks that differ on these axes.
  struct Calls {
    std::string_view op;
    std::vector<std::size_t> axes;
    std::size_t calls = 0;
    std::size_t sent_bytes = 0;  // by each rank
  };
  std::string name;  // of the function
  MeshPtr mesh;      // null: it is not divided so
  std::vector<Held> parameters = {};
  std::vector<Calls> calls = {};
};

struct Explanation {
  std::string name;    // of the function
  std::string inputs;  // "float32 (32, 784), int32 (32,)"
  int threads = 1;
  std::vector<PlanStep> steps = {};
  std::vector<std::pair<std::string, TensorType>> parameters = {};
  std::size_t arena_bytes = 0;    // all values between steps; those whose lives do not meet share memory
  std::size_t buckets_bytes = 0;  // of what is reduced over workers
  std::size_t inputs_bytes = 0;
  std::size_t outputs_bytes = 0;
  std::vector<TraceRecord> traces = {};  // of the function, the first ones
  DividedOps divided = {};               // over a mesh; no mesh: over none
  MeshPlan mesh = {};
  std::vector<CallsOfKind> calls = {};
  TrainingMemory training = {};
  // Of a placed network: over the workers of this job, or where it runs in one process, over as many as its
  // placement names. No stages: it is not placed.
  Partition partition = {};

  double flops() const;
  std::size_t bytes_moved() const;
  std::size_t parameters_bytes() const;
  // All that one run needs at once.
  std::size_t peak_bytes() const {
    return arena_bytes + buckets_bytes + inputs_bytes + outputs_bytes + parameters_bytes();
  }
};

// Many lines: the steps, parameters, memory, work and traces.
std::string to_string(const Explanation& explanation);

// Many lines: who reads, what each worker holds and does, and each transfer in the order of a run.
std::string to_string(const Partition& partition);

// An SVG: a column for each worker with what was placed there, and below it, in the order of a run, an arrow
// for each message with its size.
std::string to_svg(const Partition& partition);
// An SVG: a box for each rank of the mesh with what it holds, and edges along each axis with what travels
// there in a run.
std::string to_svg(const MeshPlan& plan);
// Many lines: the axes with their calls, and how each parameter is cut.
std::string to_string(const MeshPlan& plan);

}  // namespace muster::graph
