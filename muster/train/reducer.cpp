#include "muster/train/reducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "muster/graph/plan.h"
#include "muster/graph/served.h"
#include "muster/nn/nn.h"
#include "muster/train/aborted_step.h"
#include "muster/train/agreement.h"
#include "muster/train/context.h"
#include "muster/train/job.h"
#include "muster/train/loss_watch.h"
#include "muster/train/parameter_servers.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/recovering_call.h"
#include "muster/train/run_context.h"
#include "muster/train/session.h"
#include "muster/train/training_numbers.h"

namespace muster::train {
namespace {

std::vector<graph::TensorType> types_of(std::span<const Tensor> tensors) {
  std::vector<graph::TensorType> types;
  types.reserve(tensors.size());
  for (const Tensor& tensor : tensors) types.push_back({tensor.dtype(), tensor.shape()});
  return types;
}

// Nothing is computed beside the calls, so that more of them would only be more waiting.
const nn::Buckets one_bucket{.bytes = std::numeric_limits<std::int64_t>::max()};

// The reduction of gradients of these types. What is made lies side by side in one buffer, so that the
// collective call writes to where it leaves.
Result<std::unique_ptr<graph::Plan>> plan_for(const std::vector<graph::TensorType>& types,
                                              Reduction reduction) {
  const auto trace = graph::Trace::begin("reduce_gradients");
  MUSTER_TRY(graph::Graph graph, catch_error([&] {
               const graph::Trace::Scope scope(*trace);
               std::vector<graph::Value> gradients;
               for (const graph::TensorType& type : types) gradients.push_back(trace->input(type));
               const graph::Values reduced =
                   nn::reduce_gradients(gradients, reduction, one_bucket, nn::ElementOrder::of_tensors);
               return trace->finish(reduced, {{0, reduced.size()}});
             }));
  return graph::Plan::compile(graph, {.threads = threads()});
}

bool has_servers() { return !Session::current()->membership().roster().servers.empty(); }

// A collective call. Who has different settings gets different results.
Result<> compare_workers(const std::vector<graph::ParameterPtr>& parameters, Communicator& group,
                         bool is_divided) {
  const cluster::Traits traits = {{"seed", fmt::format("{}", seed())}};
  if (!is_divided)
    MUSTER_TRY_VOID(compare_traits(traits, Session::current()->membership().is_strict(), group));
  if (has_servers()) MUSTER_TRY_VOID(check_equal_marks(parameters, group));
  std::vector<NamedTensor> values;
  for (const graph::ParameterPtr& parameter : parameters)
    if (parameter->absence() == nullptr && !parameter->share() && is_equal_in_workers(*parameter))
      values.push_back({parameter->name(), parameter->materialize(seed())});
  return check_agreement(values, group);
}

// Whether there is one gradient of the batch: alone, in one copy of a placed network, over a mesh.
bool has_whole_batch(const PipelineLayout& now) {
  return Session::current()->membership().world_size() == 1 || (now.divides() && now.replicas == 1) ||
         context().shares_batch;
}

std::optional<std::uint32_t> divided_stages(const PipelineLayout& now) {
  return now.divides() ? std::optional(now.stages) : std::nullopt;
}

}  // namespace

// The plan, and what it was made for.
struct DistributedReducer::Compiled {
  std::vector<graph::TensorType> types;
  Reduction reduction;
  std::unique_ptr<graph::Plan> plan;

  bool serves(std::span<const Tensor> gradients, Reduction wanted) const {
    return wanted == reduction && std::equal(gradients.begin(), gradients.end(), types.begin(), types.end(),
                                             [](const Tensor& gradient, const graph::TensorType& type) {
                                               return gradient.dtype() == type.dtype &&
                                                      gradient.shape() == type.shape;
                                             });
  }
  Result<std::vector<Tensor>> run(std::span<const Tensor> gradients, Communicator& group) {
    return plan->run(gradients, {.communicator = &group, .threads = threads(), .observer = observer()});
  }
};

DistributedReducer::DistributedReducer(std::vector<std::shared_ptr<graph::Parameter>> parameters,
                                       std::optional<bool> mean)
    : parameters_(std::move(parameters)), mean_(mean) {}

DistributedReducer::~DistributedReducer() = default;

// Those of parameters on servers are added up there.
bool DistributedReducer::is_reduced(std::size_t index, const Tensor& gradient) const {
  return gradient.absence() == nullptr && !graph::served_number(*parameters_[index]);
}

Reduction DistributedReducer::reduction() const {
  return mean_.value_or(context().gradients_mean) ? Reduction::mean : Reduction::sum;
}

template <class Gradient>
Result<> DistributedReducer::check_gradients(std::span<const Gradient> gradients) const {
  if (gradients.size() != parameters_.size())
    return fail(Code::invalid_argument,
                fmt::format("the reducer was made for {} parameters but got {} gradients", parameters_.size(),
                            gradients.size()));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const graph::Parameter& parameter = *parameters_[i];
    if (gradients[i].dtype() == parameter.dtype() && gradients[i].shape() == parameter.shape()) continue;
    return fail(Code::invalid_argument,
                fmt::format("gradient {} is {} {} but its parameter '{}' is {} {}", i,
                            to_string(gradients[i].dtype()), to_string(gradients[i].shape()),
                            parameter.name(), to_string(parameter.dtype()), to_string(parameter.shape())));
  }
  return {};
}

Result<> DistributedReducer::check_equal_workers(Communicator& group, bool is_divided) {
  if (std::exchange(checked_, true)) return {};
  MUSTER_TRY_VOID(compare_workers(parameters_, group, is_divided));
  if (RecoveringCall* const call = RecoveringCall::current(); call != nullptr && !is_divided)
    call->note_equal_parameters();
  return {};
}

void DistributedReducer::forget_other_epochs(std::uint64_t epoch) {
  if (std::exchange(epoch_, epoch) == epoch) return;
  compiled_.reset();
  checked_ = false;
}

Result<DistributedReducer::Compiled*> DistributedReducer::compiled(std::span<const Tensor> gradients) {
  const Reduction wanted = reduction();
  if (compiled_ != nullptr && compiled_->serves(gradients, wanted)) return compiled_.get();
  std::vector<graph::TensorType> types = types_of(gradients);
  MUSTER_TRY(auto plan, plan_for(types, wanted));
  compiled_.reset(new Compiled{.types = std::move(types), .reduction = wanted, .plan = std::move(plan)});
  return compiled_.get();
}

Result<std::vector<Tensor>> DistributedReducer::reduce(std::span<const Tensor> gradients) {
  MUSTER_TRY_VOID(check_gradients(gradients));
  std::vector<Tensor> reduced(gradients.begin(), gradients.end());
  Session* session = Session::current();
  if (session == nullptr) return reduced;
  Membership& membership = session->membership();
  MUSTER_TRY(const PipelineLayout now, pipeline_layout());
  note_stage(now.stage);
  if (has_whole_batch(now) || gradients.empty()) {
    note_step_by_hand(true);
    return reduced;
  }
  if (step_is_aborted()) return reduced;
  MUSTER_TRY_VOID(check_no_layerwise(parameters_));
  std::vector<Tensor> here;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (is_reduced(i, gradients[i])) here.push_back(gradients[i]);
  // Whether this worker has marked all parameters says nothing of the others; but who comes back to a job
  // that recovers would compare alone.
  if (here.empty() && (!has_servers() || membership.recovers() || is_checked(membership.epoch()))) {
    note_step_by_hand(true);
    return reduced;
  }
  std::vector<Tensor> done;
  // It may be made again, in the next epoch.
  const Collectives::GroupCall work = [&](Communicator& group) -> Result<> {
    forget_other_epochs(membership.epoch());
    MUSTER_TRY_VOID(check_equal_workers(group, now.divides()));
    if (here.empty()) return {};
    MUSTER_TRY(Compiled* const made, compiled(here));
    MUSTER_TRY(done, made->run(here, group));
    return {};
  };
  MUSTER_TRY_VOID(call_in_body([&] {
    return session->recovery().explicit_collective("the reduction of gradients", divided_stages(now), work);
  }));
  if (step_is_aborted()) return reduced;
  auto next = done.begin();
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    Tensor& gradient = reduced[i];
    if (!is_reduced(i, gradient)) continue;
    if (gradient.home()) next->set_home(*gradient.home());
    gradient = *next++;
  }
  note_step_by_hand(true);
  return reduced;
}

Result<graph::Values> DistributedReducer::trace(std::span<const graph::Value> gradients) {
  MUSTER_TRY_VOID(check_gradients(gradients));
  Session* const session = Session::current();
  if (session == nullptr) return graph::Values(gradients.begin(), gradients.end());
  MUSTER_TRY(const PipelineLayout now, pipeline_layout());
  graph::Trace& plan = *graph::Trace::current();
  plan.before_run([](bool /*is_first*/) -> Result<> {
    note_step_by_hand(false);
    return {};
  });
  if (has_whole_batch(now) || gradients.empty()) return graph::Values(gradients.begin(), gradients.end());
  MUSTER_TRY_VOID(check_no_layerwise(parameters_));
  // Not by `this`, which the plan may outlive.
  plan.before_run([parameters = parameters_, now](bool is_first) -> Result<> {
    Session& here = *Session::current();
    if (!is_first || here.membership().recovers()) return {};
    return here.recovery().explicit_collective(
        "the comparison of parameters", divided_stages(now),
        [&](Communicator& group) { return compare_workers(parameters, group, now.divides()); });
  });
  return nn::reduce_gradients_of(parameters_, gradients, reduction(), context().buckets);
}

}  // namespace muster::train
