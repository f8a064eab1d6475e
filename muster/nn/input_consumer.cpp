#include "muster/nn/input_consumer.h"

#include <algorithm>
#include <array>
#include <vector>

namespace muster::nn {
namespace {

using graph::TensorType;

// Of a batch: what is not placed, and so has to take it, is mostly arithmetic and changes of shape.
const std::array<TensorType, 5>& made_up_types() {
  static const std::array<TensorType, 5> types{{{DType::float32, Shape({2, 3, 8, 8})},
                                                {DType::float32, Shape({2, 8})},
                                                {DType::float32, Shape({2, 8, 8})},
                                                {DType::int32, Shape({2, 8})},
                                                {DType::int32, Shape({2})}}};
  return types;
}

// Of the first placed node that depends on the first input.
graph::PlacementPtr first_placed_user(const graph::Graph& graph) {
  std::vector<bool> depends(graph.values.size(), false);
  depends[graph.inputs.front()] = true;
  for (const graph::Node& node : graph.nodes) {
    if (std::none_of(node.inputs.begin(), node.inputs.end(), [&](auto id) { return depends[id]; })) continue;
    if (node.placement != nullptr) return node.placement;
    for (const auto id : node.outputs) depends[id] = true;
  }
  return nullptr;
}

graph::PlacementPtr input_consumer_of(Cell& network, const TensorType& type, std::size_t inputs) {
  const auto trace = graph::Trace::begin("input_consumer");
  std::vector<Value> traced{trace->input(type)};
  while (traced.size() < inputs) traced.push_back(trace->input({DType::int32, Shape({2})}));
  const graph::FailureWatch failure;
  try {
    const graph::Trace::Scope scope(*trace);
    (void)network.call(traced);
  } catch (...) {  // the made-up type does not fit
  }
  const graph::PlacementPtr user = first_placed_user(trace->finish({}));
  return user != nullptr ? user : failure.first();
}

}  // namespace

std::optional<std::uint32_t> input_consumer(Cell& network, std::size_t inputs) {
  for (const TensorType& type : made_up_types())
    if (const graph::PlacementPtr user = input_consumer_of(network, type, inputs)) return user->rank;
  return std::nullopt;
}

}  // namespace muster::nn
