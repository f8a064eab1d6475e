// Private to graph: a compiled plan for people.
#pragma once

#include <string>

#include "muster/graph/execution/compiled_plan.h"
#include "muster/graph/explanation.h"

namespace muster::graph {

// All but the traces.
Explanation explain(const CompiledPlan& plan);
// "conv2d [onednn] -> aBcd16b", the format only where it is not plain.
std::string text_of(const CompiledPlan& plan, const PlannedStep& step);
// That, and what the step does.
RunObserver::Description describe(const CompiledPlan& plan, const PlannedStep& step);
// Each step so, one line each.
std::string to_string(const CompiledPlan& plan);

}  // namespace muster::graph
