#include "muster/train/divided_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "muster/graph/sharding/choice.h"
#include "muster/graph/sharding/mesh.h"
#include "muster/train/context.h"
#include "muster/train/job.h"
#include "muster/train/parameters.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/process.h"
#include "muster/train/run_context.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

using graph::Parameter;

bool is_divisible(const Parameter& parameter, const Zero& zero, std::uint32_t workers) {
  const auto bytes = static_cast<std::int64_t>(parameter.type().size_bytes());
  return parameter.shape().rank() > 0 && parameter.shape()[0] > 0 && parameter.shape()[0] % workers == 0 &&
         bytes >= zero.threshold_bytes;
}

// What was trained is kept: it becomes whole before it is cut anew. What has only its initial values, not
// made yet, is made in its new pieces.
Result<> divide(Parameter& parameter, const std::optional<Parameter::Share>& share) {
  if (same_pieces(parameter.share(), share)) return {};
  if (parameter.share() && parameter.materialized()) {
    MUSTER_TRY(const Tensor whole, gathered(parameter));
    parameter.divide({});
    MUSTER_TRY_VOID(parameter.set(whole));
  }
  parameter.divide(share);
  return {};
}

bool is_over_mesh(const Parameter& parameter) {
  return parameter.share() && graph::is_over_mesh(parameter.share()->layout);
}

// Over a mesh the state is cut as its parameter is, and further by the axes that do not cut that.
Result<std::optional<Parameter::Share>> share_over_mesh(const Parameter& parameter, const Zero& zero) {
  if (zero.level == 0 || parameter.shape().rank() == 0) return parameter.share();
  const std::string uncut(parameter.shape().rank() - 1, ';');
  MUSTER_TRY(const graph::TensorLayout whole,
             graph::layout_in({{"mesh", context().mesh}, {"layout", uncut}}, parameter.shape()));
  auto layout = graph::layout_of_state(parameter, whole.mesh, zero.threshold_bytes);
  if (!layout) return parameter.share();
  return Parameter::Share{.layout = *std::move(layout), .rank = rank()};
}

std::optional<Parameter::Share> share_of(const Parameter& parameter, const Zero& zero,
                                         const PipelineLayout& layout) {
  if (zero.level == 0 || layout.replicas == 1 || !is_divisible(parameter, zero, layout.replicas))
    return std::nullopt;
  const auto mesh =
      std::make_shared<const graph::Mesh>(std::vector<graph::MeshAxis>{{graph::zero_axis, layout.replicas}});
  graph::TensorLayout pieces{.mesh = mesh, .dims = {}};
  pieces.dims.resize(parameter.shape().rank());
  pieces.dims[0] = {0};
  return Parameter::Share{
      .layout = std::move(pieces), .rank = layout.replica, .scatters_gradients = zero.level >= 2};
}

// One around another, whose own parameters and states are divided by themselves.
Result<> require_no_wrapper(const nn::Optimizer& optimizer) {
  if (dynamic_cast<const nn::LARS*>(&optimizer) == nullptr) return {};
  return fail(Code::not_provided,
              fmt::format("{} cannot share the state of its optimizer over the workers (Zero, or parameters "
                          "that are divided over a mesh): leave Zero out, or choose Lamb or an optimizer of "
                          "muster.nn that updates each element for itself, such as Adam, Momentum or SGD",
                          optimizer.class_name()));
}

// Once for each class.
void tell_of_whole_updates(const nn::Optimizer& optimizer) {
  const std::string& name = optimizer.class_name();
  if (rank() != 0 || !process().warnings_given.insert("whole updates of " + name).second) return;
  log::warning(fmt::format(
      "{} updates whole parameters, or is written in Python: each worker makes all of its updates, and Zero "
      "shares nothing of it. The numbers are the same; an optimizer of muster.nn that updates each element "
      "for itself, such as Adam, Momentum or SGD, saves memory and time",
      name));
}

}  // namespace

bool same_pieces(const std::optional<Parameter::Share>& a, const std::optional<Parameter::Share>& b) {
  if (!a || !b) return !a && !b;
  return *a->layout.mesh == *b->layout.mesh && a->layout.dims == b->layout.dims && a->rank == b->rank &&
         a->scatters_gradients == b->scatters_gradients;
}

Result<> divide_optimizer(const nn::Optimizer& optimizer) {
  const Zero& zero = context().zero;
  MUSTER_TRY(const PipelineLayout layout, pipeline_layout());
  const std::vector<graph::ParameterPtr>& updated = optimizer.updated_parameters();
  const bool is_mesh = context().shares_batch;
  const bool divides = (zero.level > 0 && (layout.replicas > 1 || is_mesh)) ||
                       (process().planner != nullptr && world_size() > 1) ||
                       std::ranges::any_of(updated, [](const auto& each) { return is_over_mesh(*each); });
  if (divides && graph::is_eager())
    return fail(
        Code::not_provided,
        "in eager mode ops run one by one, and no state can be shared over the workers (Zero, or parameters "
        "that are divided over a mesh, as parallel.plan does): choose graph mode");
  const bool is_shared = optimizer.updates_elements();
  if (divides && !is_shared) {
    MUSTER_TRY_VOID(require_no_wrapper(optimizer));
    tell_of_whole_updates(optimizer);
  }
  for (std::size_t i = 0; i < updated.size(); ++i) {
    Parameter& parameter = *updated[i];
    parameter.set_update_counter(optimizer.global_step());
    for (const graph::ParameterPtr& state : optimizer.states_of(i))
      state->set_update_counter(optimizer.global_step());
    if (parameter.home() && !is_mesh) continue;
    if (is_mesh || is_over_mesh(parameter)) {
      if (!is_over_mesh(parameter)) MUSTER_TRY_VOID(divide(parameter, std::nullopt));
      MUSTER_TRY(const std::optional<Parameter::Share> share,
                 share_over_mesh(parameter, is_shared ? zero : Zero{}));
      for (const graph::ParameterPtr& state : optimizer.states_of(i)) MUSTER_TRY_VOID(divide(*state, share));
      continue;
    }
    const std::optional<Parameter::Share> share =
        is_shared ? share_of(parameter, zero, layout) : std::nullopt;
    MUSTER_TRY_VOID(divide(parameter, zero.level == 3 ? share : std::nullopt));
    for (const graph::ParameterPtr& state : optimizer.states_of(i)) MUSTER_TRY_VOID(divide(*state, share));
  }
  return {};
}

Result<> divide_parameter(Parameter& parameter, const std::string& mesh, const std::string& layout) {
  MUSTER_TRY(graph::TensorLayout made,
             graph::layout_in({{"mesh", mesh}, {"layout", layout}}, parameter.shape()));
  if (world_size() == 1) return {};  // alone, where nothing is divided
  return divide(parameter, Parameter::Share{.layout = std::move(made), .rank = rank()});
}

checkpoint::MeshLayout held_layout(std::span<const graph::ParameterPtr> parameters) {
  checkpoint::MeshLayout made;
  for (const graph::ParameterPtr& parameter : parameters) {
    if (!parameter->share()) continue;
    const graph::TensorLayout& layout = parameter->share()->layout;
    if (made.axes.empty())
      for (const graph::MeshAxis& axis : layout.mesh->axes()) made.axes.push_back({axis.name, axis.size});
    checkpoint::MeshLayout::Rule& rule = made.rules.emplace_back();
    rule.pattern = parameter->name();
    for (const graph::TensorLayout::Axes& axes : layout.dims) {
      std::vector<std::string>& names = rule.cuts.emplace_back();
      for (const std::size_t axis : axes) names.push_back(layout.mesh->axes()[axis].name);
    }
  }
  if (made.axes.empty()) made.axes.push_back({"workers", world_size()});
  return made;
}

Result<Tensor> gathered(Parameter& parameter) {
  MUSTER_TRY(const graph::RunContext context, tracing_context());
  return graph::gathered(parameter, context);
}

}  // namespace muster::train
