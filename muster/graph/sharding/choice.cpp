#include "muster/graph/sharding/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "muster/graph/sharding/dimensions.h"
#include "muster/graph/sharding/mesh.h"

namespace muster::graph {
namespace {

constexpr std::size_t data_axis = 0, model_axis = 1;  // of the mesh

MeshPtr mesh_of(const StepLayout& layout) {
  return std::make_shared<const Mesh>(
      std::vector<MeshAxis>{{.name = "data", .size = layout.data}, {.name = "model", .size = layout.model}});
}

// Follows what the axis `model` cuts through the graph, and cuts weights where it meets them.
class WeightCutter {
 public:
  WeightCutter(const Graph& graph, const StepLayout& layout)
      : graph_(graph), parts_(layout.model), mesh_(mesh_of(layout)), cuts_(graph.values.size()) {
    for (const auto& [id, parameter] : graph.parameters) {
      parameters_[id] = parameter.get();
      if (!parameter->share()) continue;
      decided_.insert_or_assign(parameter.get(), std::nullopt);
      for (std::size_t dim = 0; dim < parameter->share()->layout.dims.size(); ++dim)
        if (std::ranges::count(parameter->share()->layout.dims[dim], model_axis) > 0) cuts_[id] = dim;
    }
  }

  std::map<const Parameter*, TensorLayout> run() {
    for (const Node& node : graph_.nodes) {
      if (node.op->dimensions == nullptr || node.op->collective) continue;
      if (is_cast_of_undecided(node)) {
        parameters_[node.outputs[0]] = parameters_.at(node.inputs[0]);
        continue;
      }
      std::vector<TensorType> inputs, outputs;
      for (const ValueId id : node.inputs) inputs.push_back(graph_.values[id]);
      for (const ValueId id : node.outputs) outputs.push_back(graph_.values[id]);
      DimensionMap map(inputs, outputs, node.attributes);
      node.op->dimensions(map);
      follow(node, map);
    }
    std::map<const Parameter*, TensorLayout> made;
    for (const auto& [parameter, dim] : decided_) {
      if (!dim) continue;
      TensorLayout layout{.mesh = mesh_, .dims = {}};
      layout.dims.resize(parameter->shape().rank());
      layout.dims[*dim] = {model_axis};
      made.emplace(parameter, std::move(layout));
    }
    return made;
  }

 private:
  void follow(const Node& node, const DimensionMap& map) {
    std::optional<int> label = label_that_comes(node, map);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (const Parameter* const parameter = undecided(node.inputs[i])) {
        if (!label && is_summed_with(map, i)) label = label_that_it_gives(map, i);
        decide(*parameter, label, map.of_inputs[i]);
      }
    if (!label) return;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      cuts_[node.outputs[i]] = place_of(map.of_outputs[i], *label);
  }

  // The label that the largest input brings which is cut.
  std::optional<int> label_that_comes(const Node& node, const DimensionMap& map) const {
    std::optional<int> found;
    std::int64_t most = 0;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::optional<std::size_t> dim = cuts_[node.inputs[i]];
      if (!dim || map.inputs[i].shape.elements() <= most) continue;
      const int label = map.of_inputs[i][*dim];
      if (label == DimensionMap::whole || !map.can_cut(label, parts_)) continue;
      most = map.inputs[i].shape.elements();
      found = label;
    }
    return found;
  }

  const Parameter* undecided(ValueId id) const {
    const auto found = parameters_.find(id);
    if (found == parameters_.end() || decided_.contains(found->second)) return nullptr;
    return found->second->requires_grad() ? found->second : nullptr;
  }

  // In mixed precision: what reads the cast decides about the weight.
  bool is_cast_of_undecided(const Node& node) const {
    return node.op->name == "cast" && undecided(node.inputs[0]) != nullptr;
  }

  // Whether the op sums over a dimension of input `i`, as products and convolutions do of their weights.
  bool is_summed_with(const DimensionMap& map, std::size_t i) const {
    return map.inputs[i].shape.rank() >= 2 && std::ranges::any_of(map.of_inputs[i], [&](int label) {
             return label != DimensionMap::whole && !place_of(map.of_outputs[0], label);
           });
  }

  // One that the output has from input `i` alone.
  std::optional<int> label_that_it_gives(const DimensionMap& map, std::size_t i) const {
    for (const int label : map.of_inputs[i]) {
      if (label == DimensionMap::whole || !place_of(map.of_outputs[0], label) || !map.can_cut(label, parts_))
        continue;
      bool is_alone = true;
      for (std::size_t other = 0; other < map.of_inputs.size(); ++other)
        if (other != i && place_of(map.of_inputs[other], label)) is_alone = false;
      if (is_alone) return label;
    }
    return std::nullopt;
  }

  // A parameter is decided about where it, or a cast of it, is first read.
  void decide(const Parameter& parameter, std::optional<int> label, const DimensionMap::Labels& labels) {
    std::optional<std::size_t> dim;
    if (label) dim = place_of(labels, *label);
    decided_.insert_or_assign(&parameter, dim);
    for (const auto& [id, each] : parameters_)
      if (each == &parameter) cuts_[id] = dim;
  }

  static std::optional<std::size_t> place_of(const DimensionMap::Labels& labels, int label) {
    const auto found = std::ranges::find(labels, label);
    if (found == labels.end()) return std::nullopt;
    return static_cast<std::size_t>(found - labels.begin());
  }

  const Graph& graph_;
  std::int64_t parts_;
  MeshPtr mesh_;
  std::map<ValueId, const Parameter*> parameters_;                  // also of their casts
  std::map<const Parameter*, std::optional<std::size_t>> decided_;  // which dimension; nothing: it is whole
  std::vector<std::optional<std::size_t>> cuts_;                    // by value: the dimension that is cut
};

}  // namespace

std::string StepLayout::mesh_text() const { return graph::mesh_text(*mesh_of(*this)); }

std::optional<std::int64_t> samples_of(const Graph& graph) {
  for (const ValueId id : graph.inputs)
    if (graph.values[id].shape.rank() > 0) return graph.values[id].shape[0];
  return std::nullopt;
}

std::map<const Parameter*, TensorLayout> layouts_of_weights(const Graph& graph, const StepLayout& layout) {
  if (layout.model == 1) return {};
  return WeightCutter(graph, layout).run();
}

void cut_samples(Graph& graph, const StepLayout& layout, std::uint32_t rank) {
  const std::optional<std::int64_t> samples = samples_of(graph);
  if (!samples || *samples % layout.data != 0) return;
  std::vector<Node> cuts;
  std::map<ValueId, ValueId> cut_as;
  for (const ValueId id : graph.inputs) {
    const TensorType type = graph.values[id];
    if (type.shape.rank() == 0 || type.shape[0] != *samples) continue;
    graph.values.push_back(type);
    const auto here = static_cast<ValueId>(graph.values.size() - 1);
    cut_as[id] = here;
    cuts.push_back({.op = &required_op("shard"),
                    .inputs = {id},
                    .outputs = {here},
                    .attributes = {{"mesh", layout.mesh_text()},
                                   {"layout", "data" + std::string(type.shape.rank() - 1, ';')},
                                   {"rank", static_cast<std::int64_t>(rank)}}});
  }
  for (Node& node : graph.nodes)
    for (ValueId& id : node.inputs)
      if (const auto found = cut_as.find(id); found != cut_as.end()) id = found->second;
  graph.nodes.insert(graph.nodes.begin(), cuts.begin(), cuts.end());
}

namespace {

bool is_cut_by(const TensorLayout& layout, std::size_t axis) {
  return std::ranges::any_of(
      layout.dims, [&](const TensorLayout::Axes& axes) { return std::ranges::count(axes, axis) > 0; });
}

TensorLayout plain(const MeshPtr& mesh, const Shape& shape) {
  return {.mesh = mesh, .dims = std::vector<TensorLayout::Axes>(shape.rank())};
}

// Along the first dimension by each axis that does not cut `layout` yet.
TensorLayout cut_further(TensorLayout layout, const Shape& shape) {
  for (std::size_t axis = 0; axis < layout.mesh->cutting_axes(); ++axis) {
    const std::int64_t size = layout.mesh->axes()[axis].size;
    if (size == 1 || is_cut_by(layout, axis)) continue;
    if (shape[0] % (layout.parts(0) * size) == 0) layout.dims[0].push_back(axis);
  }
  return layout;
}

bool is_large(const TensorType& type, std::int64_t threshold_bytes) {
  return type.shape.rank() > 0 && static_cast<std::int64_t>(type.size_bytes()) >= threshold_bytes;
}

}  // namespace

std::optional<TensorLayout> layout_of_state(const Parameter& parameter, const MeshPtr& mesh,
                                            std::int64_t threshold_bytes) {
  if (!is_large(parameter.held_type(), threshold_bytes)) return std::nullopt;
  TensorLayout layout = cut_further(
      parameter.share() ? parameter.share()->layout : plain(mesh, parameter.shape()), parameter.shape());
  if (layout.is_whole()) return std::nullopt;
  return layout;
}

std::map<const Parameter*, TensorLayout> layouts_of_parameters(const Graph& graph, const StepLayout& layout) {
  std::map<const Parameter*, TensorLayout> made = layouts_of_weights(graph, layout);
  if (layout.zero_level < 3 || layout.data == 1) return made;
  const MeshPtr mesh = mesh_of(layout);
  for (const auto& [id, parameter] : graph.parameters) {
    if (!parameter->requires_grad() || parameter->share()) continue;
    const auto cut = made.find(parameter.get());
    TensorLayout used = cut == made.end() ? plain(mesh, parameter->shape()) : cut->second;
    if (!is_large({parameter->dtype(), used.piece_shape(parameter->shape())}, layout.zero_threshold_bytes))
      continue;
    used = cut_further(std::move(used), parameter->shape());
    if (!used.is_whole()) made.insert_or_assign(parameter.get(), std::move(used));
  }
  return made;
}

void gather_for_use(Graph& graph, const StepLayout& layout, std::uint32_t rank) {
  if (layout.zero_level < 3) return;
  std::map<ValueId, TensorLayout> used;
  for (const auto& [id, parameter] : graph.parameters) {
    if (!parameter->share() || !is_cut_by(parameter->share()->layout, data_axis)) continue;
    TensorLayout whole = parameter->share()->layout;
    for (TensorLayout::Axes& axes : whole.dims) std::erase(axes, data_axis);
    used.emplace(id, std::move(whole));
  }
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.inputs.size() && !node.op->has_effect(); ++i) {
      const auto found = used.find(node.inputs[i]);
      if (found == used.end()) continue;
      graph.values.push_back(graph.values[node.inputs[i]]);
      const auto here = static_cast<ValueId>(graph.values.size() - 1);
      nodes.push_back({.op = &required_op("shard"),
                       .inputs = {node.inputs[i]},
                       .outputs = {here},
                       .attributes = {{"mesh", layout.mesh_text()},
                                      {"layout", layout_text(found->second)},
                                      {"rank", static_cast<std::int64_t>(rank)},
                                      {"again", true}},
                       .is_behind_losses = node.is_behind_losses});
      node.inputs[i] = here;
    }
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
}

namespace {

// As its parameter is divided, or further where the state is shared.
void divide_states(Graph& graph, const StepLayout& layout, const MeshPtr& mesh) {
  std::map<ValueId, ParameterPtr> parameters(graph.parameters.begin(), graph.parameters.end());
  for (const Node& node : graph.nodes) {
    if (!node.op->optimizer.exists()) continue;
    const auto updated = parameters.find(node.inputs[0]);
    if (updated == parameters.end()) continue;
    std::optional<Parameter::Share> share = updated->second->share();
    if (layout.zero_level > 0)
      if (auto further = layout_of_state(*updated->second, mesh, layout.zero_threshold_bytes))
        share = Parameter::Share{.layout = *std::move(further), .rank = 0};
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      const auto state = parameters.find(node.inputs[i]);
      if (node.op->writes(i) && state != parameters.end() &&
          state->second->shape() == updated->second->shape())
        state->second->divide(share);
    }
  }
}

}  // namespace

void divide_step(Graph& graph, const StepLayout& layout) {
  const std::map<const Parameter*, TensorLayout> weights = layouts_of_parameters(graph, layout);
  for (const auto& [id, parameter] : graph.parameters)
    if (const auto found = weights.find(parameter.get()); found != weights.end())
      parameter->divide(Parameter::Share{.layout = found->second, .rank = 0});
  divide_states(graph, layout, mesh_of(layout));
  gather_for_use(graph, layout, 0);
  cut_samples(graph, layout, 0);
}

}  // namespace muster::graph
