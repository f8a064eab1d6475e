#include "muster/train/shared_inputs.h"

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

}  // namespace

Result<> compare_shared_inputs(const graph::Graph& graph, std::span<const Tensor> inputs) {
  Session* const session = Session::current();
  if (session == nullptr || process().has_compared_inputs || !has_whole_batches()) return {};
  const Membership& membership = session->membership();
  if (membership.world_size() == 1 || membership.recovers() || membership.in_forked_child()) return {};
  if (!trains(graph)) return {};
  process().has_compared_inputs = true;
  return session->collectives().call_all([&](Communicator& all) { return check_equal_inputs(inputs, all); });
}

void watch_shared_inputs() {
  if (explain_mode() != ExplainMode::off || process().cost_watch.load() != nullptr) return;
  graph::observe_graphs(new SharedInputsWatch);  // kept: a run may still look at it
}

}  // namespace muster::train
