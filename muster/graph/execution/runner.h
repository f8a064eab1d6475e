// Private to graph: the memory of a plan's runs, and running it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "muster/graph/execution/arenas.h"
#include "muster/graph/execution/call_thread.h"
#include "muster/graph/execution/compiled_plan.h"
#include "muster/graph/execution/output_buffers.h"
#include "muster/graph/execution/rollback.h"

namespace muster::graph {

// Runs a plan, which outlives it and does not change. What does not change from run to run is made once: a
// run patches the addresses of inputs, outputs and parameters and calls kernels; it allocates, hashes and
// locks nothing. Threads: one run at a time.
class Runner {
 public:
  // Null: no other plan shares its arenas.
  explicit Runner(const CompiledPlan& plan, std::shared_ptr<Arenas> arenas = nullptr);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // As Plan::run.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunContext& context);

 private:
  class Run;

  // The call of a step.
  struct StepCall {
    KernelCall call;
    std::optional<Error> failure;
    std::uint64_t ticket = 0;  // in this run: its number among the calls of its thread; 0: it has none
  };
  // An address that changes from run to run.
  struct Patch {
    std::byte** where = nullptr;
    std::size_t index = 0;
    std::size_t offset_bytes = 0;
  };
  struct Patches {
    std::vector<Patch> inputs;
    std::vector<Patch> outputs;
    std::vector<Patch> parameters;
    std::vector<Patch> buckets;  // when they get other memory
    std::vector<Patch> arena;    // likewise
  };
  // Of an output that has no memory of its own.
  struct Copy {
    std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t size_bytes = 0;
  };
  struct Buckets {
    std::shared_ptr<Buffer> memory;
    Communicator* owner = nullptr;  // whose memory it is; null: ordinary memory
  };
  // Each is made when it is first needed.
  struct Threads {
    std::unique_ptr<CallThread> calls;
    // Of sends alone, once one is worth it: what waits for its receiver holds up nothing that comes
    // meanwhile.
    std::unique_ptr<CallThread> sends;
  };

  void make_calls();
  void make_copies();
  void bind(std::byte*& where, const Location& location);
  Result<> check(std::span<const Tensor> inputs, const RunContext& context) const;
  void place(std::span<const Tensor> inputs, const RunContext& context);
  void place_parameters(std::uint64_t seed);
  void place_buckets(Communicator* sharing);
  void place_arena(std::byte* arena);
  std::vector<Tensor> outputs_here() const;
  std::vector<Tensor> outputs_of_run() const;
  bool reduces_async(const RunContext& context) const;
  CallThread* thread_for(const RunContext& context);

  const CompiledPlan& plan_;
  std::shared_ptr<Arenas> arenas_;
  std::byte* arena_ = nullptr;         // that the addresses are of
  std::vector<std::byte*> addresses_;  // step by step: of each node the inputs, then the outputs
  std::vector<StepCall> calls_;        // by step
  std::vector<Copy> copies_;
  Patches patches_;  // into the three above
  Rollback rollback_;
  std::vector<std::byte*> parameter_addresses_;  // of this run
  Buckets buckets_;
  OutputBuffers outputs_;
  Threads threads_;
};

}  // namespace muster::graph
