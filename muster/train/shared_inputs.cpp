#include "muster/train/shared_inputs.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "muster/train/agreement.h"
#include "muster/train/explain.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/predictions.h"
#include "muster/train/process.h"
#include "muster/train/run_context.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

class SharedInputsWatch final : public graph::GraphObserver {
 public:
  Result<bool> compiling(graph::Graph& graph, std::span<const Tensor> inputs,
                         const graph::PlanOptions&) override {
    MUSTER_TRY_VOID(compare_shared_inputs(graph, inputs));
    return false;
  }
};

// Workers of several stages read other columns.
bool has_whole_batches() {
  return context().shares_batch && context().mesh_stages == 1 && stages() == nullptr;
}

// Where the script divides something, and how: "what relu gives (8, 16) as 'data;model' over data=2,model=2".
std::vector<std::string> cuts_in(const graph::Graph& graph) {
  std::map<graph::ValueId, std::string> names;
  for (const graph::ValueId input : graph.inputs) names[input] = "an input";
  for (const auto& [id, parameter] : graph.parameters) names[id] = fmt::format("'{}'", parameter->name());
  std::vector<std::string> cuts;
  for (const graph::Node& node : graph.nodes) {
    for (const graph::ValueId output : node.outputs)
      names[output] = fmt::format("what {} gives", node.op->name);
    if (node.op->name != "shard") continue;
    const graph::ValueId divided = node.inputs[0];
    cuts.push_back(fmt::format(
        "{} {} as '{}' over {}", names[divided], to_string(graph.values[divided].shape),
        node.attributes.get("layout", std::string()), node.attributes.get("mesh", std::string())));
    names[node.outputs[0]] = names[divided];
  }
  return cuts;
}

}  // namespace

Result<> compare_shared_inputs(const graph::Graph& graph, std::span<const Tensor> inputs) {
  Session* const session = Session::current();
  if (session == nullptr || process().has_compared_inputs || !has_whole_batches()) return {};
  const Membership& membership = session->membership();
  if (membership.world_size() == 1 || membership.recovers() || membership.in_forked_child()) return {};
  if (!trains(graph)) return {};
  process().has_compared_inputs = true;
  return session->collectives().call_all([&](Communicator& all) -> Result<> {
    MUSTER_TRY_VOID(check_equal_cuts(cuts_in(graph), all));
    return check_equal_inputs(inputs, all);
  });
}

void watch_shared_inputs() {
  if (explain_mode() != ExplainMode::off || process().cost_watch.load() != nullptr) return;
  graph::observe_graphs(new SharedInputsWatch);  // kept: a run may still look at it
}

}  // namespace muster::train
