// Private to graph: looks at what each step of a plan gives, while anomalies are detected.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "muster/graph/anomaly.h"
#include "muster/graph/execution/compiled_plan.h"

namespace muster::graph {

// Of one run.
class AnomalyWatch {
 public:
  // `parameters` are the addresses of the plan's parameters.
  AnomalyWatch(const CompiledPlan& plan, std::span<const Tensor> inputs,
               std::span<std::byte* const> parameters);

  // `step` has run; `addresses` are those of its call: of each node the inputs, then the outputs.
  Result<> look(const PlannedStep& step, std::byte* const* addresses);

 private:
  struct Seen {
    Numbers numbers;
    std::string source;
  };
  void note(ValueId id, const std::byte* elements, std::string source);
  Numbers numbers(ValueId id, const std::byte* elements) const;
  std::vector<LookedAt> given_to(const Node& node) const;
  Result<> look(const Node& node, std::byte* const* outputs);

  const CompiledPlan& plan_;
  std::vector<ValueId> roots_;
  std::vector<Seen> seen_;  // by value
};

}  // namespace muster::graph
