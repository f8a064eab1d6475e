// Private to train: search for how a step is best divided over some workers of this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/train/predictions.h"

namespace muster::train {

struct StepPlan {
  graph::StepLayout layout;
  std::optional<graph::Prediction> prediction;  // nothing: it cannot be, for the reason in `problem`
  std::string problem = {};
};

struct SearchOptions {
  std::uint32_t workers = 1;
  std::optional<std::size_t> memory_bytes = {};  // that a worker may need at the peak; nothing: any
  std::optional<CallTimes> calls = {};
};

struct FoundPlans {
  std::vector<StepPlan> plans;             // that fit, the fastest first
  std::vector<StepPlan> dropped;           // the others
  std::optional<graph::Prediction> alone;  // of one process with all cores
};

// All meshes of `data` by `model`, without Zero and with levels 1 and 3, for the graphs that a step runs one
// after another.
FoundPlans find_plans(const std::vector<const NotedGraph*>& step, const SearchOptions& options);

// Of those that need too much the one that needs least; null: none is dropped for its memory.
const StepPlan* smallest_dropped(const FoundPlans& found);

// "1.2 MiB"
std::string memory_text(std::size_t bytes);
// "data=4, model=2, zero=1"
std::string to_string(const graph::StepLayout& layout);
// The table for people, or one line of JSON.
std::string to_text(const FoundPlans& found, const SearchOptions& options);
std::string to_json(const FoundPlans& found, const SearchOptions& options);

// What MUSTER_PLAN says to a script that `muster plan` has started: "8,1048576,json": workers, bytes (0:
// any), how.
struct PlanRequest {
  SearchOptions search;
  bool as_json = false;
};
PlanRequest plan_request();

}  // namespace muster::train
