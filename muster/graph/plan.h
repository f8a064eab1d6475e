// Plan: a compiled graph, ready to run again and again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/graph/explanation.h"
#include "muster/graph/nodes.h"
#include "muster/graph/run.h"

namespace muster::graph {

class Arenas;

struct PlanOptions {
  int threads = 1;  // that kernels are chosen for; other numbers work, slower
  // Of a placed graph: the stage to compile. Parameters that it places get their home.
  StageIndex stage_index = {};
  std::vector<std::optional<std::uint32_t>> input_homes = {};  // of the inputs' tensors (Tensor::home)
  std::shared_ptr<Arenas> arenas = nullptr;                    // of plans that run in turn; null: its own
};

// What was compiled, which never changes (execution/compiled_plan.h), and the memory of its runs
// (execution/runner.h). Kernels are chosen, memory is planned once with lifetimes in one arena
// (execution/arenas.h), arguments are prebuilt; outputs come from a pool whose buffers are used again when
// their last handle is gone. Threads: one run at a time.
class Plan {
 public:
  static Result<std::unique_ptr<Plan>> compile(const Graph& graph, const PlanOptions& options = {});
  ~Plan();

  // `inputs` must have the types of the graph's inputs. An error that comes before parameters are updated or
  // others take part leaves everything as it was.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunContext& context);

  std::size_t arena_bytes() const;
  // How the graph is divided; null when nothing in it is placed.
  const Partition* partition() const;
  // Whether all parameters of the graph still live where this plan takes them to be.
  bool is_valid() const;
  // All but the traces.
  Explanation explain() const;
  // Each step with its kernel, one line each.
  std::string to_string() const;

 private:
  struct State;
  explicit Plan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace muster::graph
