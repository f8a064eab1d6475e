// PipelineTimes of the stages of a placed step that run beside each other. Private to graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::graph {

struct PipelineStep {
  enum class Kind { compute, call, send, receive };

  Kind kind = Kind::compute;
  double seconds = 0;      // alone on a core; of a receive nothing: it waits
  std::uint32_t peer = 0;  // of a send or receive: the other stage
};

struct PipelineOptions {
  std::size_t workers_of_stage = 1;
  int threads = 1;  // of each
  int cores = 1;    // of all
};

struct PipelineTimes {
  struct Stage {
    double computing_s = 0;  // with what sharing cores adds
    double calls_s = 0;      // sends among them
    double waiting_s = 0;    // for what other stages send, and for the last of them at the end
  };
  double step_s = 0;
  std::vector<Stage> stages;
};

// Each stage makes its steps one after the other. What computes at one time shares the cores; a message is
// there when its send is done, and messages from one stage to another are received in their order. Stages
// that wait for what no stage sends end where they are.
PipelineTimes run_beside(const std::vector<std::vector<PipelineStep>>& stages,
                         const PipelineOptions& options);

}  // namespace muster::graph
