// Explanation: what a plan is made of, for people: `muster explain`.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/graph/parts.h"
#include "muster/graph/type.h"

namespace muster::graph {

// One trace of a function.
struct TraceRecord {
  std::string signature;  // "float32 (32, 784), int32 (32,)"
  std::string reason;     // "first call", "input 0 is float32 (16, 784), was float32 (32, 784)"
  std::size_t nodes = 0;
  std::chrono::nanoseconds duration{};  // tracing and compiling
};

// "float32 (32, 784), int32 (32,): first call; 12 nodes, 3.1 ms"
std::string to_string(const TraceRecord& trace);

// One kernel call of a plan.
struct PlanStep {
  std::string_view op;
  std::string_view kernel;
  std::string result;     // the type of its first output; empty: it gives none
  std::string format;     // in which that lies; empty: plain
  double flops = 0;       // a multiply-add counts as two; 0 where the row of the op does not count
  std::size_t bytes = 0;  // of what it reads and writes
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
  // Of a placed network: over the workers of this job, or where it runs in one process, over as many as its
  // placement names. No parts: it is not placed.
  Parts parts = {};

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

}  // namespace muster::graph
