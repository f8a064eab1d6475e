#include "muster/graph/execution/anomaly_watch.h"

#include <fmt/format.h>

#include <utility>

#include "muster/graph/ops/primitive.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

// `elements` in row-major order.
Result<Tensor> plain(const TensorType& type, const FormatPtr& format, std::byte* elements, int threads) {
  Tensor made(type.dtype, type.shape);
  const PrimitivePtr reorder = library_of(format, nullptr).reorder(format, nullptr, threads);
  if (reorder == nullptr) return fail(Code::internal, "a value cannot be reordered");
  const auto scratch = Buffer::allocate(reorder->scratch_bytes);
  std::byte* const out = made.bytes();
  if (!reorder->run(&elements, &out, scratch->data(), threads))
    return fail(Code::internal, "a kernel of the primitive library failed");
  return made;
}

}  // namespace

AnomalyWatch::AnomalyWatch(const CompiledPlan& plan, std::span<const Tensor> inputs,
                           std::span<std::byte* const> parameters)
    : plan_(plan), roots_(roots_of(plan.graph)), seen_(plan.graph.values.size()) {
  const Graph& graph = plan.graph;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].absence() == nullptr)
      note(graph.inputs[i], inputs[i].bytes(), fmt::format("input {} of '{}'", i, graph.name));
  for (const auto& [id, tensor] : graph.captured)
    note(id, tensor.bytes(), fmt::format("a tensor that the code of '{}' holds", graph.name));
  for (std::size_t i = 0; i < graph.parameters.size(); ++i)
    note(graph.parameters[i].first, parameters[i],
         fmt::format("parameter '{}'", graph.parameters[i].second->name()));
}

Result<> AnomalyWatch::look(const PlannedStep& step, std::byte* const* addresses) {
  for (const Node& node : plan_.nodes_of(step)) {
    MUSTER_TRY_VOID(look(node, addresses + node.inputs.size()));
    addresses += node.inputs.size() + node.outputs.size();
  }
  return {};
}

Result<> AnomalyWatch::look(const Node& node, std::byte* const* outputs) {
  const std::vector<LookedAt> given = given_to(node);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId id = node.outputs[i];
    const TensorType& type = plan_.graph.values[id];
    if (!is_floating(type.dtype)) continue;
    const LookedAt made{.type = type, .numbers = numbers(id, outputs[i])};
    seen_[roots_[id]] = {made.numbers, {}};
    if (!is_anomaly(made.numbers, given)) continue;
    const FormatPtr& format = plan_.formats[id];
    if (format == nullptr) return fail(anomaly_of(*node.op, node.origin, made, outputs[i], given));
    MUSTER_TRY(const Tensor elements, plain(type, format, outputs[i], plan_.threads));
    return fail(anomaly_of(*node.op, node.origin, made, elements.bytes(), given));
  }
  return {};
}

// Padding holds zeros.
Numbers AnomalyWatch::numbers(ValueId id, const std::byte* elements) const {
  const TensorType& type = plan_.graph.values[id];
  const std::size_t bytes = size_bytes(type, plan_.formats[id]);
  return numbers_of(elements, type.dtype, static_cast<std::int64_t>(bytes / muster::size_bytes(type.dtype)));
}

void AnomalyWatch::note(ValueId id, const std::byte* elements, std::string source) {
  seen_[id] = {numbers(id, elements), std::move(source)};
}

std::vector<LookedAt> AnomalyWatch::given_to(const Node& node) const {
  std::vector<LookedAt> given;
  for (const ValueId id : node.inputs) {
    const Seen& seen = seen_[roots_[id]];
    given.push_back({plan_.graph.values[id], seen.numbers, seen.source});
  }
  return given;
}

}  // namespace muster::graph
