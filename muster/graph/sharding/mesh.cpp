#include "muster/graph/sharding/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "muster/graph/ops/ops.h"
#include "muster/graph/ops/transfer.h"
#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"
#include "muster/graph/sharding/dimensions.h"
#include "muster/graph/sharding/expansion.h"
#include "muster/graph/sharding/redistribution.h"
#include "muster/graph/sharding/updates.h"

namespace muster::graph {
namespace {

using Axes = TensorLayout::Axes;

std::vector<std::string> split(const std::string& text, char between) {
  std::vector<std::string> parts(1);
  for (const char each : text)
    if (each == between)
      parts.emplace_back();
    else
      parts.back() += each;
  return parts;
}

MeshPtr mesh_in(const Attributes& attributes) {
  std::vector<MeshAxis> axes;
  for (const std::string& part : split(attributes.get("mesh", std::string()), ',')) {
    const std::size_t equals = part.find('=');
    MeshAxis axis{.name = part.substr(0, equals), .size = 1};
    if (equals != std::string::npos)
      std::from_chars(part.data() + equals + 1, part.data() + part.size(), axis.size);
    axes.push_back(std::move(axis));
  }
  return std::make_shared<const Mesh>(std::move(axes));
}

// Of the axes that may cut a tensor.
std::string names_of(const Mesh& mesh) {
  std::string names;
  for (std::size_t axis = 0; axis < mesh.cutting_axes(); ++axis)
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", mesh.axes()[axis].name);
  return names;
}

Result<std::size_t> axis_named(const Mesh& mesh, const std::string& name) {
  for (std::size_t axis = 0; axis < mesh.cutting_axes(); ++axis)
    if (mesh.axes()[axis].name == name) return axis;
  return fail(Code::invalid_argument,
              fmt::format("shard: the mesh has no axis '{}', it has {}", name, names_of(mesh)));
}

std::string divisors_text(std::int64_t size) {
  std::string text;
  for (std::int64_t each = 1; each <= size; ++each)
    if (size % each == 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", each);
  return text;
}

}  // namespace

bool is_over_mesh(const TensorLayout& layout) { return layout.mesh->axes().front().name != zero_axis; }

Result<TensorLayout> layout_in(const Attributes& attributes, const Shape& shape) {
  TensorLayout layout{.mesh = mesh_in(attributes), .dims = {}};
  layout.dims.resize(shape.rank());
  const std::string text = attributes.get("layout", std::string());
  const std::vector<std::string> dims =
      shape.rank() == 0 && text.empty() ? std::vector<std::string>{} : split(text, ';');
  if (dims.size() != shape.rank())
    return fail(Code::invalid_argument,
                fmt::format("shard: a layout of {} dimensions was given for {}, which has {}", dims.size(),
                            muster::to_string(shape), shape.rank()));
  std::vector<bool> used(layout.mesh->axes().size(), false);
  for (std::size_t dim = 0; dim < dims.size(); ++dim) {
    for (const std::string& name : dims[dim].empty() ? std::vector<std::string>{} : split(dims[dim], '+')) {
      MUSTER_TRY(const std::size_t axis, axis_named(*layout.mesh, name));
      if (used[axis])
        return fail(Code::invalid_argument,
                    fmt::format("shard: axis '{}' cuts two dimensions of {}, or one twice", name,
                                muster::to_string(shape)));
      if (!layout.dims[dim].empty() && layout.dims[dim].back() > axis && !attributes.get("any_order", false))
        return fail(Code::invalid_argument,
                    fmt::format("shard: axes that cut one dimension come in the order of the mesh, {}",
                                names_of(*layout.mesh)));
      used[axis] = true;
      if (layout.mesh->axes()[axis].size > 1) layout.dims[dim].push_back(axis);
    }
    if (shape[dim] % layout.parts(dim) != 0)
      return fail(
          Code::invalid_argument,
          fmt::format(
              "shard: dimension {} of {} cannot be cut into {} equal parts by {}: it can be cut into {}", dim,
              muster::to_string(shape), layout.parts(dim), to_string(layout), divisors_text(shape[dim])));
  }
  return layout;
}

std::string mesh_text(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes())
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
  return text;
}

std::string layout_text(const TensorLayout& layout) {
  std::string text;
  for (std::size_t dim = 0; dim < layout.dims.size(); ++dim) {
    if (dim > 0) text += ';';
    for (std::size_t i = 0; i < layout.dims[dim].size(); ++i)
      text += (i > 0 ? "+" : "") + layout.mesh->axes()[layout.dims[dim][i]].name;
  }
  return text;
}

namespace {

const Op& shard_op() {
  static const Op& op = required_op("shard");
  return op;
}

bool is_over_mesh(const Parameter& parameter) {
  return parameter.share() && is_over_mesh(parameter.share()->layout);
}

class MeshDivider {
 public:
  MeshDivider(Graph whole, const MeshPlace& place, Layouts transferred = {})
      : whole_(std::move(whole)),
        mesh_(place.mesh),
        rank_(place.rank),
        transferred_(std::move(transferred)),
        between_(made_, mesh_, rank_) {
    made_.name = whole_.name;
    made_.contiguous = whole_.contiguous;
    made_.notes = whole_.notes;
  }

  Result<Graph> run() {
    take_outside();
    roots_ = roots_of(whole_);
    const std::vector<Node> nodes = std::move(whole_.nodes);
    for (const Node& node : nodes) MUSTER_TRY_VOID(add(node));
    write_for_good();
    for (const ValueId id : whole_.outputs) made_.outputs.push_back(as(id, plain(id)));
    divided_.mesh = to_string(*mesh_);
    divided_.axes = mesh_;
    made_.divided = std::make_shared<const DividedOps>(std::move(divided_));
    return std::move(made_);
  }

  // After run().
  Layouts layouts() const {
    Layouts found;
    for (const auto& [id, local] : locals_) found.emplace(id, local.layout);
    return found;
  }

 private:
  // ---- Values ----
  TensorLayout plain(const Shape& shape) const {
    return {.mesh = mesh_, .dims = std::vector<Axes>(shape.rank())};
  }
  TensorLayout plain(ValueId id) const { return plain(whole_.values[id].shape); }
  TensorType piece(const TensorType& type, const TensorLayout& layout) const {
    return {type.dtype, layout.piece_shape(type.shape)};
  }

  void take_outside() {
    const auto take = [&](ValueId id, TensorLayout layout) {
      const ValueId here = between_.value(piece(whole_.values[id], layout));
      locals_[id] = {.id = here, .layout = std::move(layout)};
      return here;
    };
    for (const ValueId id : whole_.inputs) made_.inputs.push_back(take(id, plain(id)));
    for (const auto& [id, tensor] : whole_.captured) made_.captured.emplace_back(take(id, plain(id)), tensor);
    for (const auto& [id, parameter] : whole_.parameters)
      made_.parameters.emplace_back(take(id, parameter->share() ? parameter->share()->layout : plain(id)),
                                    parameter);
  }

  // The id under which `id` is here in `layout`.
  ValueId as(ValueId id, const TensorLayout& layout) {
    auto& known = in_layouts_[id];
    for (const auto& [dims, here] : known)
      if (dims == layout.dims) return here;
    LocalValue& local = locals_.at(id);
    local = between_.joined(std::move(local), layout);  // a sum is made once
    const ValueId here = between_.in_layout(local, layout).id;
    known.emplace_back(layout.dims, here);
    return here;
  }

  // ---- Nodes of the graph ----
  Result<> add(const Node& node) {
    between_.set_behind_losses(node.is_behind_losses);
    if (std::ranges::any_of(node.inputs, [&](ValueId id) { return waiting_.contains(root_of(id)); }))
      write_for_good();
    if (node.op == &shard_op()) return reshard(node);
    if (node.op == &send_op() || node.op == &receive_op()) return transfer(node);
    if (has_cut_samples(node) || writes_pieces(node)) {
      MUSTER_TRY(const std::optional<Graph> others, expansion_of(whole_, node));
      if (others) return add_all(*others, node);
    }
    const bool reads_alone = node.op->dimensions != nullptr && !writes_here(node);
    if (node.op->has_effect() && !node.op->collective && !reads_alone) return write(node);
    if (node.op->dimensions != nullptr && add_divided(node)) return {};
    std::vector<TensorLayout> layouts;
    for (const ValueId id : node.inputs) layouts.push_back(plain(id));
    if (std::ranges::any_of(node.inputs, [&](ValueId id) { return !locals_.at(id).layout.is_whole(); }))
      note(*node.op, "");
    return add_with(node, layouts, {}, node.attributes);
  }

  void note(const Op& op, std::string layouts) {
    const auto is_alike = [&](const DividedOps::Entry& entry) {
      return entry.op == op.name && entry.layouts == layouts;
    };
    auto found = std::ranges::find_if(divided_.entries, is_alike);
    if (found == divided_.entries.end())
      found = divided_.entries.insert(found, {.op = op.name, .layouts = std::move(layouts)});
    ++found->count;
  }

  void note(const Op& op, const std::vector<TensorLayout>& given, const std::vector<TensorLayout>& made) {
    std::string text;
    for (const TensorLayout& layout : given) text += to_string(layout) + ' ';
    text += "to";
    for (const TensorLayout& layout : made) text += ' ' + to_string(layout);
    note(op, std::move(text));
  }

  // Whether its first input is cut at samples or channels.
  bool has_cut_samples(const Node& node) const {
    if (node.inputs.empty()) return false;
    const std::vector<Axes>& dims = locals_.at(node.inputs[0]).layout.dims;
    return dims.size() >= 2 && (!dims[0].empty() || !dims[1].empty());
  }

  // Whether it writes a parameter that is divided over the mesh.
  bool writes_pieces(const Node& node) const {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.op->writes(i) && !locals_.at(node.inputs[i]).layout.is_whole()) return true;
    return false;
  }

  // Outside of training the statistics of a batch_norm are only read.
  static bool writes_here(const Node& node) {
    return node.op->has_effect() && (node.op->name != "batch_norm" || node.attributes.get("training", false));
  }

  // What gives the outputs of `node`.
  Result<> add_all(const Graph& others, const Node& node) {
    std::map<ValueId, ValueId> ids;
    for (std::size_t i = 0; i < others.inputs.size(); ++i) ids[others.inputs[i]] = node.inputs[i];
    for (const Node& other : others.nodes) {
      Node here = other;
      here.placement = node.placement;
      here.origin = node.origin;
      for (ValueId& id : here.inputs) id = ids.at(id);
      for (ValueId& id : here.outputs) {
        whole_.values.push_back(others.values[id]);
        ids[id] = static_cast<ValueId>(whole_.values.size() - 1);
        id = ids.at(id);
      }
      MUSTER_TRY_VOID(add(here));
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      locals_[node.outputs[i]] = locals_.at(ids.at(others.outputs[i]));
    return {};
  }

  Result<> reshard(const Node& node) {
    MUSTER_TRY(TensorLayout layout, layout_in(node.attributes, whole_.values[node.inputs[0]].shape));
    if (*layout.mesh != *mesh_)
      return fail(Code::invalid_argument, fmt::format("'{}' is divided over two meshes: {} and {}",
                                                      whole_.name, names_of(*mesh_), names_of(*layout.mesh)));
    layout.mesh = mesh_;
    // A parameter that is gathered for each use of it is not kept from one to the next.
    const bool again = node.attributes.get("again", false);
    const ValueId here =
        again ? between_.in_layout(locals_.at(node.inputs[0]), layout).id : as(node.inputs[0], layout);
    locals_[node.outputs[0]] = {.id = here, .layout = std::move(layout)};
    return {};
  }

  // Between stages travels what a rank has: who is at the same place of the other stage's mesh goes on with
  // it.
  Result<> transfer(const Node& node) {
    std::vector<TensorLayout> sent, received;
    for (const ValueId id : node.inputs) sent.push_back(transferred_.at(id));
    for (const ValueId id : node.outputs) received.push_back(transferred_.at(id));
    return add_with(node, sent, received, node.attributes);
  }

  // ---- Writes ----
  // What expansions add is no other name of anything.
  ValueId root_of(ValueId id) const { return id < roots_.size() ? roots_[id] : id; }

  // How the state of an update is divided where the parameter is divided less (Zero).
  std::optional<TensorLayout> pieces_of_state(const Node& node) const {
    if (!is_elementwise_update(*node.op)) return std::nullopt;
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      const TensorLayout& layout = locals_.at(node.inputs[i]).layout;
      if (node.op->writes(i) && whole_.values[node.inputs[i]].shape == whole_.values[node.inputs[0]].shape &&
          layout.dims != locals_.at(node.inputs[0]).layout.dims)
        return layout;
    }
    return std::nullopt;
  }

  // Each rank makes its piece of the update beside what there is; the pieces are gathered, and everything is
  // written behind all calls, so that a step that fails in one has changed nothing.
  void update_in_pieces(const Node& node, const TensorLayout& pieces) {
    const ValueId parameter = node.inputs[0];
    const TensorLayout own = locals_.at(parameter).layout;
    Node here = node;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      const bool is_alike = whole_.values[id].shape == whole_.values[parameter].shape;
      here.inputs[i] = as(id, is_alike ? pieces : plain(id));
      if (!node.op->writes(i)) continue;
      waiting_.insert(root_of(id));
      if (i == 0) continue;  // a slice, in memory of its own
      const ValueId copy = between_.copied(here.inputs[i]);
      later_.push_back(assignment(here.inputs[i], copy));
      here.inputs[i] = copy;
    }
    here.outputs = {between_.value(piece(whole_.values[parameter], pieces))};
    made_.nodes.push_back(here);
    const ValueId gathered = between_.in_layout({.id = here.outputs[0], .layout = pieces}, own).id;
    later_.push_back(assignment(locals_.at(parameter).id, gathered));
    locals_[node.outputs[0]] = {.id = later_.back().outputs[0], .layout = own};
  }

  // Whether it is an update by a formula of whole parameters, and something of them is in pieces.
  bool needs_wholes(const Node& node) const {
    return node.op->optimizer.exists() && !is_elementwise_update(*node.op) && writes_pieces(node);
  }

  // Each rank makes the whole update in memory of its own, and keeps its pieces of it, which are written
  // behind all calls, as above.
  void update_wholes(const Node& node) {
    Node here = node;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      here.inputs[i] = as(id, plain(id));
      if (!node.op->writes(i)) continue;
      here.inputs[i] = between_.copied(here.inputs[i]);
      waiting_.insert(root_of(id));
    }
    here.outputs = {between_.value(whole_.values[node.inputs[0]])};
    made_.nodes.push_back(here);
    note(*node.op, "");
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      if (node.op->writes(i)) keep_piece(node.inputs[i], here.inputs[i]);
    const TensorLayout own = locals_.at(node.inputs[0]).layout;
    locals_[node.outputs[0]] = {.id = keep_piece(node.inputs[0], here.outputs[0]), .layout = own};
  }

  // Of what `id` of the whole graph is to be; the answer is its name from then on.
  ValueId keep_piece(ValueId id, ValueId made) {
    const LocalValue& local = locals_.at(id);
    const ValueId piece = between_.in_layout({.id = made, .layout = plain(id)}, local.layout).id;
    later_.push_back(assignment(local.id, piece));
    return later_.back().outputs[0];
  }

  Node assignment(ValueId to, ValueId from) {
    return {.op = &required_op("assign"),
            .inputs = {to, from},
            .outputs = {between_.value(made_.values[to])},
            .attributes = {},
            .is_behind_losses = true};
  }

  void write_for_good() {
    std::ranges::move(later_, std::back_inserter(made_.nodes));
    later_.clear();
    std::erase_if(in_layouts_, [&](const auto& entry) { return waiting_.contains(root_of(entry.first)); });
    waiting_.clear();
  }

  // Of a parameter: all that looks like it is divided as it is.
  Result<> write(const Node& node) {
    if (const auto pieces = pieces_of_state(node)) return update_in_pieces(node, *pieces), Result<>{};
    if (needs_wholes(node)) return update_wholes(node), Result<>{};
    std::vector<TensorLayout> layouts;
    const bool is_elementwise =
        node.op->sharing == Sharing::in_place &&
        (is_elementwise_update(*node.op) || node.op->name == "assign" || node.op->name == "assign_add");
    const TensorLayout own = is_elementwise ? locals_.at(node.inputs[0]).layout : plain(node.inputs[0]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      layouts.push_back(
          is_elementwise && whole_.values[id].shape == whole_.values[node.inputs[0]].shape ? own : plain(id));
      if (node.op->writes(i) && locals_.at(id).layout.dims != layouts.back().dims)
        return fail(Code::not_provided,
                    fmt::format("'{}': {} writes a parameter that is divided over the mesh as {}, and cannot "
                                "do so in pieces: leave this parameter whole",
                                whole_.name, node.op->name, to_string(locals_.at(id).layout)));
    }
    MUSTER_TRY_VOID(add_with(node, layouts, is_elementwise ? std::vector{own} : std::vector<TensorLayout>{},
                             node.attributes));
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.op->writes(i)) in_layouts_.erase(node.inputs[i]);
    return {};
  }

  // The node with inputs in these layouts; its outputs have `made`, or are whole.
  Result<> add_with(const Node& node, const std::vector<TensorLayout>& layouts,
                    std::vector<TensorLayout> made, const Attributes& attributes) {
    Node here{.op = node.op,
              .inputs = {},
              .outputs = {},
              .attributes = attributes,
              .placement = node.placement,
              .origin = node.origin,
              .is_behind_losses = node.is_behind_losses};
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      here.inputs.push_back(as(node.inputs[i], layouts[i]));
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      TensorLayout layout = i < made.size() ? std::move(made[i]) : plain(node.outputs[i]);
      here.outputs.push_back(between_.value(piece(whole_.values[node.outputs[i]], layout)));
      locals_[node.outputs[i]] = {.id = here.outputs.back(), .layout = std::move(layout)};
    }
    made_.nodes.push_back(std::move(here));
    return {};
  }

  // By the rule of its row; false where nothing of it can be divided.
  bool add_divided(const Node& node) {
    std::vector<TensorType> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(whole_.values[id]);
    for (const ValueId id : node.outputs) outputs.push_back(whole_.values[id]);
    DimensionMap map(inputs, outputs, node.attributes);
    node.op->dimensions(map);
    const std::map<int, Axes> cuts = cuts_of(node, map);
    if (cuts.empty()) return false;
    std::vector<TensorLayout> given, made;
    for (std::size_t i = 0; i < inputs.size(); ++i) given.push_back(layout_of(map.of_inputs[i], cuts));
    for (std::size_t i = 0; i < outputs.size(); ++i) made.push_back(layout_of(map.of_outputs[i], cuts));
    Attributes attributes = node.attributes;
    if (!map.shape.empty()) attributes.set(map.shape, made[0].piece_shape(outputs[0].shape).sizes());
    if (!map.part.empty())
      attributes.set(map.part,
                     attributes.get(map.part, std::int64_t{0}) * made[0].parts(0) + made[0].index(0, rank_));
    if (!gives(node, inputs, given, outputs, made, attributes)) return false;
    note(*node.op, given, made);
    (void)add_with(node, given, made, attributes);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      for (const auto& [label, axes] : cuts)
        if (std::ranges::count(map.of_outputs[i], label) + std::ranges::count(map.copies, i) == 0) {
          LocalValue& local = locals_.at(node.outputs[i]);
          local.partial.insert(local.partial.end(), axes.begin(), axes.end());
          local.joins = map.joins;
        }
    return true;
  }

  // Which axes cut each label: those that cut it already in the largest input that has it.
  std::map<int, Axes> cuts_of(const Node& node, const DimensionMap& map) const {
    std::vector<std::size_t> order(node.inputs.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return map.inputs[a].shape.elements() > map.inputs[b].shape.elements();
    });
    std::map<int, Axes> cuts;
    std::vector<bool> used(mesh_->axes().size(), false);
    for (const std::size_t i : order) {
      const TensorLayout& layout = locals_.at(node.inputs[i]).layout;
      for (std::size_t dim = 0; dim < layout.dims.size(); ++dim) {
        const int label = map.of_inputs[i][dim];
        const Axes& axes = layout.dims[dim];
        if (label == DimensionMap::whole || axes.empty() || cuts.contains(label)) continue;
        if (std::ranges::any_of(axes, [&](std::size_t axis) { return used[axis]; })) continue;
        if (!map.can_cut(label, layout.parts(dim))) continue;
        cuts[label] = axes;
        for (const std::size_t axis : axes) used[axis] = true;
      }
    }
    return cuts;
  }

  TensorLayout layout_of(const DimensionMap::Labels& labels, const std::map<int, Axes>& cuts) const {
    TensorLayout layout{.mesh = mesh_, .dims = std::vector<Axes>(labels.size())};
    for (std::size_t dim = 0; dim < labels.size(); ++dim)
      if (const auto found = cuts.find(labels[dim]); found != cuts.end()) layout.dims[dim] = found->second;
    return layout;
  }

  // Whether the op gives pieces of the outputs for pieces of the inputs.
  bool gives(const Node& node, const std::vector<TensorType>& inputs, const std::vector<TensorLayout>& given,
             const std::vector<TensorType>& outputs, const std::vector<TensorLayout>& made,
             const Attributes& attributes) const {
    std::vector<TensorType> pieces, expected;
    for (std::size_t i = 0; i < inputs.size(); ++i) pieces.push_back(piece(inputs[i], given[i]));
    for (std::size_t i = 0; i < outputs.size(); ++i) expected.push_back(piece(outputs[i], made[i]));
    const auto inferred = node.op->infer({pieces, {}, attributes});
    return inferred && *inferred == expected;
  }

  Graph whole_;
  MeshPtr mesh_;
  std::uint32_t rank_;
  Layouts transferred_;
  Graph made_;
  Redistribution between_;
  DividedOps divided_;
  std::vector<ValueId> roots_;            // of the whole graph
  std::vector<Node> later_;               // writes that wait for all calls
  std::set<ValueId> waiting_;             // the roots of what they write
  std::map<ValueId, LocalValue> locals_;  // by value of the whole graph
  std::map<ValueId, std::vector<std::pair<std::vector<Axes>, ValueId>>> in_layouts_;  // likewise
};

}  // namespace

Result<std::optional<MeshPlace>> mesh_of(const Graph& graph) {
  std::optional<MeshPlace> place;
  bool has_zero = false;
  for (const auto& [id, parameter] : graph.parameters)
    if (is_over_mesh(*parameter))
      place = MeshPlace{.mesh = parameter->share()->layout.mesh, .rank = parameter->share()->rank};
    else
      has_zero = has_zero || parameter->share();
  for (const Node& node : graph.nodes)
    if (node.op == &shard_op())
      place = MeshPlace{.mesh = mesh_in(node.attributes),
                        .rank = static_cast<std::uint32_t>(node.attributes.get("rank", std::int64_t{0}))};
  if (place && has_zero)
    return fail(
        Code::not_provided,
        fmt::format("'{}': Zero and a mesh together are not provided: choose one of them", graph.name));
  return place;
}

Result<Layouts> layouts_over_mesh(Graph whole, const MeshPlace& place) {
  MeshDivider divider(std::move(whole), place);
  MUSTER_TRY_VOID(divider.run());
  return divider.layouts();
}

Result<> divide_over_mesh(Graph& graph, const MeshPlace& place, const Layouts& transferred) {
  remove_dead(graph);
  MeshDivider divider(std::move(graph), place, transferred);
  MUSTER_TRY(graph, divider.run());
  return {};
}

}  // namespace muster::graph
