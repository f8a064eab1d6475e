#include "muster/graph/onnx/onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "muster/graph/onnx/rule.h"
#include "muster/tensor/kernels.h"

namespace muster::graph {

std::int64_t onnx_dtype(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return 1;
    case DType::uint8:
      return 2;
    case DType::int8:
      return 3;
    case DType::int32:
      return 6;
    case DType::int64:
      return 7;
    case DType::bool_:
      return 9;
    case DType::float64:
      return 11;
    case DType::uint32:
      return 12;
    case DType::bfloat16:
      return 16;
    case DType::float16:
      return 10;
    case DType::int16:
      return 5;
    case DType::uint16:
      return 4;
    case DType::uint64:
      return 13;
  }
  MUSTER_CHECK(false, "a dtype has no number in ONNX");
  return 0;
}

std::string OnnxBuilder::unique(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !names.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
  return name;
}

// ---- What rules build with --------------------------------------------------------------------------------

std::vector<std::string> OnnxCall::all_inputs() const {
  std::vector<std::string> names;
  for (const End& end : inputs_) names.push_back(end.name);
  return names;
}

std::string OnnxCall::make(std::string_view type, std::vector<std::string> inputs,
                           OnnxAttributes attributes) {
  std::string output = builder_.unique(fmt::format("{}_part", out().name));
  builder_.model.nodes.push_back({.type = std::string(type),
                                  .name = builder_.unique(fmt::format("{}_{}", node_.op->name, type)),
                                  .inputs = std::move(inputs),
                                  .outputs = {output},
                                  .attributes = std::move(attributes)});
  return output;
}

Result<> OnnxCall::give(std::string_view type, std::vector<std::string> inputs, OnnxAttributes attributes,
                        std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(out(i).name);
  builder_.model.nodes.push_back({.type = std::string(type),
                                  .name = builder_.unique(fmt::format("{}_{}", node_.op->name, type)),
                                  .inputs = std::move(inputs),
                                  .outputs = std::move(names),
                                  .attributes = std::move(attributes)});
  given_ = count;
  return {};
}

Result<> OnnxCall::give_with_indices(std::string_view type, std::vector<std::string> inputs,
                                     OnnxAttributes attributes) {
  const std::string indices = builder_.unique(fmt::format("{}_part", out(1).name));
  builder_.model.nodes.push_back({.type = std::string(type),
                                  .name = builder_.unique(fmt::format("{}_{}", node_.op->name, type)),
                                  .inputs = std::move(inputs),
                                  .outputs = {out(0).name, indices},
                                  .attributes = std::move(attributes)});
  builder_.model.nodes.push_back({.type = "Cast",
                                  .name = builder_.unique(fmt::format("{}_Cast", node_.op->name)),
                                  .inputs = {indices},
                                  .outputs = {out(1).name},
                                  .attributes = {{"to", onnx_dtype(out(1).type.dtype)}}});
  given_ = 2;
  return {};
}

std::string OnnxCall::constant(const Tensor& value) {
  std::string name = builder_.unique("constant");
  builder_.model.initializers.emplace_back(name, value);
  return name;
}

std::string OnnxCall::scalar(double value, DType dtype) {
  Tensor made(dtype, Shape{});
  kernels::cast(&value, DType::float64, made.bytes(), dtype, 1);
  return constant(made);
}

std::string OnnxCall::list(const std::vector<std::int64_t>& values) {
  Tensor made(DType::int64, Shape{static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), made.span<std::int64_t>().begin());
  return constant(made);
}

Result<std::string> OnnxCall::shape_of(const End& end) {
  const Shape& shape = end.type.shape;
  if (std::find(end.open.begin(), end.open.end(), true) == end.open.end()) return list(shape.sizes());
  if (builder_.model.inputs.empty() || builder_.model.inputs.front().type.shape.rank() == 0)
    return refuse("its shape follows the batch, and the first input has none");
  const std::int64_t batch = builder_.model.inputs.front().type.shape[0];
  if (builder_.batch.empty()) {
    const std::string all = make("Shape", {builder_.model.inputs.front().name});
    builder_.batch = make("Slice", {all, list({0}), list({1})});
  }
  std::vector<std::string> sizes;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (!end.open[axis]) {
      sizes.push_back(list({shape[axis]}));
    } else if (shape[axis] == batch) {
      sizes.push_back(builder_.batch);
    } else if (batch > 0 && shape[axis] % batch == 0) {
      sizes.push_back(make("Mul", {builder_.batch, list({shape[axis] / batch})}));
    } else {
      return refuse("its shape follows the batch in a way that cannot be written down");
    }
  }
  return make("Concat", std::move(sizes), {{"axis", std::int64_t{0}}});
}

std::string OnnxCall::cast(std::string value, DType dtype) {
  return make("Cast", {std::move(value)}, {{"to", onnx_dtype(dtype)}});
}

tl::unexpected<Error> OnnxCall::refuse(std::string_view why) const {
  return fail(Code::not_provided, std::string(why));
}

// ---- A graph into a model ---------------------------------------------------------------------------------

namespace {

// What follows the batch by its nature; in any other attribute another value is another computation.
bool may_follow_batch(const std::string& attribute) { return attribute == "shape" || attribute == "size"; }

// "the ONNX export of op 'cumprod' in Net 'head' (net.py:31)"
std::string place_of(const Node& node) {
  std::string text = fmt::format("the ONNX export of op '{}'", node.op->name);
  if (node.origin == nullptr || node.origin->cell.empty()) return text;
  text += fmt::format(" in {}", node.origin->cell);
  return node.origin->line.empty() ? text : fmt::format("{} ({})", text, node.origin->line);
}

class Exporter {
 public:
  Exporter(const Graph& graph, std::uint64_t seed, const OnnxOptions& options)
      : graph_(graph), seed_(seed), options_(options), names_(graph.values.size()) {}

  Result<OnnxModel> run() {
    builder_.model.name = graph_.name.empty() ? "muster" : graph_.name;
    MUSTER_TRY_VOID(check_other_batch());
    MUSTER_TRY_VOID(add_inputs());
    MUSTER_TRY_VOID(add_parameters());
    for (const auto& [id, tensor] : graph_.captured) add_initializer(id, "constant", tensor);
    MUSTER_TRY_VOID(name_outputs());
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (is_needed(graph_.nodes[i])) MUSTER_TRY_VOID(add(i));
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) MUSTER_TRY_VOID(add_output(i));
    drop_unused();
    return std::move(builder_.model);
  }

 private:
  std::vector<bool> open(ValueId id) const {
    const Shape& shape = graph_.values[id].shape;
    std::vector<bool> open(shape.rank(), false);
    if (options_.other_batch == nullptr) return open;
    const Shape& other = options_.other_batch->values[id].shape;
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) open[axis] = shape[axis] != other[axis];
    return open;
  }

  // The second trace must be the first one but for sizes.
  Result<> check_other_batch() const {
    const Graph* const other = options_.other_batch;
    if (other == nullptr) return {};
    const auto differs = [](const std::string& what) {
      return fail(Code::not_provided,
                  fmt::format("export: with another batch size the network {}: leave dynamic_batch away, and "
                              "export it for the size that you need",
                              what));
    };
    if (other->nodes.size() != graph_.nodes.size() || other->values.size() != graph_.values.size())
      return differs("computes something else");
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& a = graph_.nodes[i];
      const Node& b = other->nodes[i];
      if (a.op != b.op || a.inputs != b.inputs || a.outputs != b.outputs)
        return differs("computes something else");
      for (const auto& [name, value] : a.attributes.entries()) {
        const Attribute* found = b.attributes.find(name);
        if ((found == nullptr || *found != value) && !may_follow_batch(name))
          return differs(fmt::format("calls '{}' with another {}", a.op->name, name));
      }
    }
    for (std::size_t id = 0; id < graph_.values.size(); ++id)
      if (graph_.values[id].shape.rank() != other->values[id].shape.rank())
        return differs("has tensors with other axes");
    for (std::size_t i = 0; i < graph_.captured.size(); ++i) {
      const Tensor& a = graph_.captured[i].second;
      const Tensor& b = other->captured[i].second;
      if (a.dtype() != b.dtype() || a.shape() != b.shape() ||
          std::memcmp(a.bytes(), b.bytes(), a.size_bytes()) != 0)
        return differs("uses another constant tensor");
    }
    return {};
  }

  Result<> add_inputs() {
    const auto& given = options_.input_names;
    if (!given.empty() && given.size() != graph_.inputs.size())
      return fail(Code::invalid_argument,
                  fmt::format("export: {} input_names for {} inputs", given.size(), graph_.inputs.size()));
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const ValueId id = graph_.inputs[i];
      const std::string wanted = !given.empty()              ? given[i]
                                 : graph_.inputs.size() == 1 ? "input"
                                                             : fmt::format("input_{}", i);
      if (!builder_.names.insert(wanted).second)
        return fail(Code::invalid_argument, fmt::format("export: two inputs are named '{}'", wanted));
      names_[id] = wanted;
      builder_.model.inputs.push_back({wanted, graph_.values[id], open(id)});
    }
    return {};
  }

  Result<> add_parameters() {
    for (const auto& [id, parameter] : graph_.parameters) {
      if (const std::string* absence = parameter->absence())
        return fail(
            Code::invalid_argument,
            fmt::format("export: '{}' is not on this worker: {}. Load a checkpoint of the whole network "
                        "in a process alone, and export there",
                        parameter->name(), *absence));
      if (parameter->share())
        return fail(Code::invalid_argument,
                    fmt::format("export: {}. Save a checkpoint, load it in a process alone, and export there",
                                parameter->division_text()));
      add_initializer(id, parameter->name().empty() ? "parameter" : parameter->name(),
                      parameter->materialize(seed_));
    }
    return {};
  }

  void add_initializer(ValueId id, const std::string& wanted, const Tensor& value) {
    names_[id] = builder_.unique(wanted);
    builder_.model.initializers.emplace_back(names_[id], value);
  }

  // What a node makes gets its name from the output, unless something else has it already.
  Result<> name_outputs() {
    const auto& given = options_.output_names;
    if (!given.empty() && given.size() != graph_.outputs.size())
      return fail(Code::invalid_argument,
                  fmt::format("export: {} output_names for {} outputs", given.size(), graph_.outputs.size()));
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      output_names_.push_back(!given.empty()               ? given[i]
                              : graph_.outputs.size() == 1 ? "output"
                                                           : fmt::format("output_{}", i));
      if (!builder_.names.insert(output_names_.back()).second)
        return fail(Code::invalid_argument,
                    fmt::format("export: two inputs, parameters or outputs are named '{}': say other "
                                "output_names",
                                output_names_.back()));
      std::string& name = names_[graph_.outputs[i]];
      if (name.empty()) name = output_names_.back();
    }
    std::set<ValueId> needed(graph_.outputs.begin(), graph_.outputs.end());
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      const bool is_used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                       [&](ValueId id) { return needed.contains(id); });
      if (is_used || node.op->sharing == Sharing::in_place || node.op->collective)
        needed.insert(node.inputs.begin(), node.inputs.end());
    }
    needed_ = std::move(needed);
    return {};
  }

  // What changes parameters or calls other workers is none of an inference, and an error.
  bool is_needed(const Node& node) const {
    return node.op->sharing == Sharing::in_place || node.op->collective ||
           std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId id) { return needed_.contains(id); });
  }

  OnnxCall::End end(ValueId id) {
    if (names_[id].empty()) names_[id] = builder_.unique(fmt::format("value_{}", id));
    return {names_[id], graph_.values[id], open(id)};
  }

  Result<> add(std::size_t index) {
    const Node& node = graph_.nodes[index];
    const auto explain = [&](Error error) {
      error.message = fmt::format("{}: {}", place_of(node), error.message);
      return error;
    };
    if (node.op->onnx == nullptr)
      return fail(
          explain({Code::not_provided,
                   "it has no counterpart in ONNX, or none that is known here. Compute it by other ops "
                   "where the network is exported, export the part of the network without it, or give "
                   "its row an ONNX rule (docs/dev/adding-an-op.md)"}));
    std::vector<OnnxCall::End> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(end(id));
    for (const ValueId id : node.outputs) outputs.push_back(end(id));
    OnnxCall call(builder_, node, std::move(inputs), std::move(outputs));
    MUSTER_TRY_VOID(node.op->onnx(call).map_error(explain));
    for (std::size_t i = call.given(); i < node.outputs.size(); ++i)
      if (needed_.contains(node.outputs[i]))
        return fail(
            explain({Code::not_provided,
                     fmt::format("its output {} is used, which ONNX does not give: compute it by other "
                                 "ops",
                                 i)}));
    return {};
  }

  // An input or a parameter that comes out as it is, and a value that comes out twice.
  Result<> add_output(std::size_t index) {
    const ValueId id = graph_.outputs[index];
    const std::string& name = output_names_[index];
    if (names_[id] != name)
      builder_.model.nodes.push_back({.type = "Identity",
                                      .name = builder_.unique("output_Identity"),
                                      .inputs = {names_[id]},
                                      .outputs = {name},
                                      .attributes = {}});
    builder_.model.outputs.push_back({name, graph_.values[id], open(id)});
    return {};
  }

  // Parameters that only a mode of training reads.
  void drop_unused() {
    std::set<std::string> used;
    for (const OnnxNode& node : builder_.model.nodes) used.insert(node.inputs.begin(), node.inputs.end());
    std::erase_if(builder_.model.initializers,
                  [&used](const auto& initializer) { return !used.contains(initializer.first); });
  }

  const Graph& graph_;
  const std::uint64_t seed_;
  const OnnxOptions& options_;
  OnnxBuilder builder_;
  std::vector<std::string> names_;  // by ValueId; empty: not yet
  std::vector<std::string> output_names_;
  std::set<ValueId> needed_;
};

}  // namespace

Result<OnnxModel> to_onnx(const Graph& graph, std::uint64_t seed, const OnnxOptions& options) {
  return Exporter(graph, seed, options).run();
}

}  // namespace muster::graph
