#include "muster/graph/execution/parameter_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "muster/graph/execution/updates.h"
#include "muster/graph/ops/primitive.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

// What brings a value of `type` from one format into another.
Result<PrimitivePtr> reorder_of(const TensorType& type, const FormatPtr& from, const FormatPtr& to,
                                int threads) {
  PrimitivePtr made = library_of(from, to).reorder(from, to, threads);
  if (made == nullptr)
    return fail(Code::internal, fmt::format("a value of type {} cannot be reordered", to_string(type)));
  return made;
}

class Finder {
 public:
  Finder(const Graph& graph, int threads)
      : graph_(graph), threads_(threads), writers_(graph.values.size()), formats_(graph.parameters.size()) {
    const std::vector<ValueId> roots = roots_of(graph);
    for (const Node& node : graph.nodes)
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (node.op->writes(i)) ++writers_[roots[node.inputs[i]]];
  }

  Result<std::vector<ParameterFormatPtr>> run(std::span<const FormatPtr> gradient_formats) {
    bool found = false;
    std::size_t next = 0;
    for (const Node& node : graph_.nodes) {
      if (!is_update(*node.op)) continue;
      const FormatPtr& format = gradient_formats[next++];
      if (format == nullptr || !suits(node, format)) continue;
      MUSTER_TRY(const ParameterFormatPtr made, ways_of(graph_.values[node.inputs[0]], format));
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (is_in_format(node, i)) formats_[*parameter_at(node.inputs[i])] = made;
      found = true;
    }
    if (!found) formats_.clear();
    return std::move(formats_);
  }

 private:
  std::optional<std::size_t> parameter_at(ValueId id) const {
    const auto& all = graph_.parameters;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& parameter) { return parameter.first == id; });
    if (found == all.end()) return std::nullopt;
    return static_cast<std::size_t>(found - all.begin());
  }

  // The parameter and the state like it; not a flag of one element.
  bool is_in_format(const Node& update, std::size_t input) const {
    return update.op->writes(input) && graph_.values[update.inputs[input]] == graph_.values[update.inputs[0]];
  }

  // Batch blocks are an order of images, whose number no two plans share. Padding would have to stay zero
  // whatever the formula. And nothing else may write the parameters: it could write to a copy in another
  // order.
  bool suits(const Node& update, const FormatPtr& format) const {
    if (is_batch_blocked(format) || format->size_bytes() != graph_.values[update.inputs[0]].size_bytes())
      return false;
    for (std::size_t i = 0; i < update.inputs.size(); ++i) {
      if (!is_in_format(update, i)) continue;
      if (writers_[update.inputs[i]] != 1 || !parameter_at(update.inputs[i])) return false;
    }
    return true;
  }

  // Parameters of one type in one format share the ways there and back.
  Result<ParameterFormatPtr> ways_of(const TensorType& type, const FormatPtr& format) {
    for (const auto& [known, ways] : known_)
      if (known == type && same_format(ways->format, format)) return ways;
    MUSTER_TRY(PrimitivePtr from_plain, reorder_of(type, nullptr, format, threads_));
    MUSTER_TRY(PrimitivePtr to_plain, reorder_of(type, format, nullptr, threads_));
    auto made = std::make_shared<const ParameterFormat>(
        ParameterFormat{format, std::move(from_plain), std::move(to_plain), threads_});
    known_.emplace_back(type, made);
    return made;
  }

  const Graph& graph_;
  int threads_;
  std::vector<std::size_t> writers_;  // by value
  std::vector<ParameterFormatPtr> formats_;
  std::vector<std::pair<TensorType, ParameterFormatPtr>> known_;
};

}  // namespace

Result<std::vector<ParameterFormatPtr>> parameter_formats(const Graph& graph,
                                                          std::span<const FormatPtr> gradient_formats,
                                                          int threads) {
  return Finder(graph, threads).run(gradient_formats);
}

}  // namespace muster::graph
