#include "muster/graph/execution/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "muster/graph/execution/parameter_formats.h"
#include "muster/graph/execution/updates.h"
#include "muster/graph/ops/primitive.h"
#include "muster/graph/passes/passes.h"

namespace muster::graph {
namespace {

// Made by choose_kernels only, so it is no row of the table.
const Op& reorder_op() {
  static const Op op{
      .name = "reorder",
      .documentation = "The same elements in another format.",
      .kernels = {{primitive_kernel_name, nullptr, nullptr, run_primitive},
                  {batch_blocked_kernel_name, nullptr, nullptr, run_primitive}},
  };
  return op;
}

class Chooser {
 public:
  Chooser(const Graph& graph, int threads, std::span<const FormatPtr> seen_as,
          std::vector<ParameterFormatPtr> parameter_formats)
      : from_(graph), threads_(threads), seen_as_(seen_as.begin(), seen_as.end()) {
    made_.graph = graph;
    made_.graph.nodes.clear();
    made_.formats.resize(graph.values.size());
    for (std::size_t i = 0; i < parameter_formats.size(); ++i)
      if (parameter_formats[i] != nullptr)
        made_.formats[graph.parameters[i].first] = parameter_formats[i]->format;
    made_.parameter_formats = std::move(parameter_formats);
    root_.resize(graph.values.size());
    for (ValueId id = 0; id < root_.size(); ++id) root_[id] = id;
    seen_as_.resize(graph.values.size());
    names_ = root_;
  }

  Result<Choices> run() {
    for (const Node& node : from_.nodes) MUSTER_TRY_VOID(add(node));
    for (ValueId& id : made_.graph.outputs) {
      MUSTER_TRY(id, in_format(names_[id], nullptr));
    }
    return std::move(made_);
  }

  // In which format the gradient of each update came; by the updates in order.
  const std::vector<FormatPtr>& gradient_formats() const { return gradient_formats_; }

 private:
  Result<> add(Node node) {
    const Op& op = *node.op;
    for (ValueId& id : node.inputs) {
      MUSTER_TRY(id, seen(id));
    }
    if (op.sharing == Sharing::view) {
      MUSTER_TRY(node.inputs[0], in_format(node.inputs[0], nullptr));
      root_[node.outputs[0]] = root_[node.inputs[0]];
      push(std::move(node), {});
      return {};
    }
    MUSTER_TRY(Chosen chosen, choose(node));
    if (is_update(op)) gradient_formats_.push_back(made_.formats[node.inputs[1]]);
    const auto& wanted = chosen.prepared.input_formats;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      MUSTER_TRY(const ValueId there, in_format(node.inputs[i], i < wanted.size() ? wanted[i] : nullptr));
      MUSTER_CHECK(there == node.inputs[i] || !op.writes(i), "an op would write to a copy");
      node.inputs[i] = there;
    }
    const auto& given = chosen.prepared.output_formats;
    for (std::size_t i = 0; i < node.outputs.size() && i < given.size(); ++i)
      made_.formats[node.outputs[i]] = given[i];
    note_writes(node);
    push(std::move(node), std::move(chosen));
    return {};
  }

  // Under which id nodes find a value: what was received is brought into its format when it is first needed,
  // so that the worker may compute until then.
  Result<ValueId> seen(ValueId id) {
    if (id >= seen_as_.size() || seen_as_[id] == nullptr) return id < names_.size() ? names_[id] : id;
    const FormatPtr format = std::exchange(seen_as_[id], nullptr);
    MUSTER_TRY(names_[id], in_format(id, format));
    copies_.push_back({names_[id], id});  // and back
    return names_[id];
  }

  Result<Chosen> choose(const Node& node) const {
    std::vector<TensorType> types;
    std::vector<FormatPtr> formats;
    for (const ValueId id : node.inputs) {
      types.push_back(made_.graph.values[id]);
      formats.push_back(made_.formats[id]);
    }
    for (const ValueId id : node.outputs) types.push_back(made_.graph.values[id]);
    const std::span<const TensorType> all = types;
    return choose_kernel(*node.op, {.inputs = all.first(node.inputs.size()),
                                    .outputs = all.subspan(node.inputs.size()),
                                    .attributes = node.attributes,
                                    .formats = formats,
                                    .threads = threads_});
  }

  void push(Node node, Chosen chosen) {
    made_.graph.nodes.push_back(std::move(node));
    made_.nodes.push_back(std::move(chosen));
  }

  // What was reordered before a write is old after it.
  void note_writes(const Node& node) {
    const auto forget = [&](ValueId written) {
      std::erase_if(copies_, [&](const Copy& copy) { return root_[copy.of] == root_[written]; });
    };
    if (node.op->sharing == Sharing::in_place) {
      forget(node.inputs[0]);
      root_[node.outputs[0]] = root_[node.inputs[0]];
    }
    for (const std::size_t index : node.op->written)
      if (index < node.inputs.size()) forget(node.inputs[index]);
  }

  // `id` in `format`: itself, an earlier copy, or a new one.
  Result<ValueId> in_format(ValueId id, const FormatPtr& format) {
    if (same_format(made_.formats[id], format)) return id;
    for (const Copy& copy : copies_)
      if (copy.of == id && same_format(made_.formats[copy.made], format)) return copy.made;
    if (made_.formats[id] != nullptr && format != nullptr &&
        is_batch_blocked(made_.formats[id]) != is_batch_blocked(format)) {
      MUSTER_TRY(const ValueId plain, in_format(id, nullptr));  // no library knows both
      return in_format(plain, format);
    }
    const PrimitiveLibrary& library = library_of(made_.formats[id], format);
    const PrimitivePtr primitive = library.reorder(made_.formats[id], format, threads_);
    if (primitive == nullptr)
      return fail(Code::internal, fmt::format("{}: a value of type {} cannot be reordered", made_.graph.name,
                                              to_string(made_.graph.values[id])));
    const auto made = static_cast<ValueId>(made_.graph.values.size());
    made_.graph.values.push_back(TensorType(made_.graph.values[id]));
    made_.formats.push_back(format);
    root_.push_back(made);
    copies_.push_back({id, made});
    push({.op = &reorder_op(), .inputs = {id}, .outputs = {made}, .attributes = {}},
         {&reorder_op().kernels[&library == &batch_blocked_library() ? 1 : 0], prepared(primitive)});
    return made;
  }

  struct Copy {
    ValueId of = 0;
    ValueId made = 0;
  };

  const Graph& from_;
  int threads_;
  Choices made_;
  std::vector<ValueId> root_;  // by value: what it is another name of
  std::vector<Copy> copies_;
  std::vector<FormatPtr> gradient_formats_;
  std::vector<FormatPtr> seen_as_;  // by value of the graph; null once it is so
  std::vector<ValueId> names_;      // by value of the graph: under which id nodes find it
};

// Of the values that some node of `from` makes, or that come from outside.
void take_formats(const Graph& from, const std::vector<FormatPtr>& formats, std::vector<bool>& known,
                  std::vector<FormatPtr>& made) {
  const auto take = [&](ValueId id) {
    if (id >= known.size() || known[id]) return;
    known[id] = true;
    made[id] = formats[id];
  };
  for (const auto& entry : from.parameters) take(entry.first);
  for (const Node& node : from.nodes)
    for (const ValueId id : node.outputs) take(id);
}

}  // namespace

// Kernels are chosen once with all parameters plain; this tells in which formats the gradients come. Where
// that gives parameters a format, they are chosen again.
Result<Choices> choose_kernels(const Graph& graph, int threads, std::span<const FormatPtr> seen_as) {
  Chooser plain(graph, threads, seen_as, {});
  MUSTER_TRY(Choices choices, plain.run());
  MUSTER_TRY(auto formats, parameter_formats(graph, plain.gradient_formats(), threads));
  if (formats.empty()) return choices;
  return Chooser(graph, threads, seen_as, std::move(formats)).run();
}

Result<std::vector<FormatPtr>> formats_in_plan(const Graph& graph, int threads) {
  std::vector<bool> known(graph.values.size(), false);
  std::vector<FormatPtr> made(graph.values.size());
  Graph fused = graph;
  fuse(fused);
  for (const Graph* form : {&std::as_const(fused), &graph}) {
    MUSTER_TRY(const Choices choices, choose_kernels(*form, threads));
    take_formats(choices.graph, choices.formats, known, made);
  }
  return made;
}

std::size_t size_bytes(const TensorType& type, const FormatPtr& format) {
  return format == nullptr ? type.size_bytes() : format->size_bytes();
}

}  // namespace muster::graph
