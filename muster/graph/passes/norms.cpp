// Root mean square normalization that is written op by op: x / sqrt(mean(x^2) + epsilon) gamma, or with
// rsqrt.
#include <algorithm>
#include <optional>
#include <vector>

#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/pattern.h"

namespace muster::graph {
namespace {

class NormMatcher : Pattern {
 public:
  NormMatcher(Graph& graph, std::span<const ValueId> wrt) : Pattern(graph, wrt) {}

  // The normalization that the product `last` ends.
  std::optional<Nodes> norm(const Node& last) {
    if (!is(last, "mul")) return std::nullopt;
    return found_at(last, [&]() -> std::optional<Nodes> {
      for (const std::size_t scaled : {0, 1})
        if (auto made = with_gamma(last.inputs[scaled], last.inputs[1 - scaled])) return made;
      return std::nullopt;
    });
  }

 private:
  struct Norm {
    ValueId x = 0;
    std::vector<std::int64_t> axes;
    ValueId epsilon = 0;
    const Node* first = nullptr;  // which reads x
  };

  std::optional<Nodes> with_gamma(ValueId normalized, ValueId gamma) {
    nodes_.clear();
    const std::optional<Norm> norm = normalization(normalized);
    if (!norm || !ends_with(graph_.values[norm->x].shape, graph_.values[gamma].shape, norm->axes) ||
        is_written_between(graph_, *norm->first, *last_))
      return std::nullopt;
    const TensorType y = graph_.values[last_->outputs[0]];
    const auto x = is_narrower(norm->x, y.dtype) ? in_dtype(norm->x, y.dtype) : norm->x;
    const DType statistics = computed_in(graph_.values[*x].dtype);
    const auto wide_gamma = in_dtype(as_kept(gamma, statistics), statistics);
    const auto number = make("reshape", {norm->epsilon}, {{"shape", std::vector<std::int64_t>{}}});
    const auto epsilon = number ? in_dtype(*number, statistics) : std::nullopt;
    if (!wide_gamma || !epsilon) return std::nullopt;
    const auto made = make("rms_norm", {*x, *wide_gamma, *epsilon});
    if (!made || graph_.values[*made].shape != y.shape) return std::nullopt;
    return ending(*made, y.dtype);
  }

  // x rsqrt(v) or x / sqrt(v) with v = mean(x^2) + epsilon.
  std::optional<Norm> normalization(ValueId id) const {
    if (const Node* quotient = maker(id, "div")) {
      const Node* root = input_maker(*quotient, 1, "sqrt");
      return root != nullptr ? of_mean(root->inputs[0], quotient->inputs[0]) : std::nullopt;
    }
    const Node* product = maker(id, "mul");
    if (product == nullptr) return std::nullopt;
    for (const std::size_t i : {0, 1})
      if (const Node* root = input_maker(*product, i, "rsqrt"))
        return of_mean(root->inputs[0], product->inputs[1 - i]);
    return std::nullopt;
  }

  std::optional<Norm> of_mean(ValueId v, ValueId x) const {
    const Node* sum = maker(v, "add");
    if (sum == nullptr) return std::nullopt;
    const std::size_t number = is_number(sum->inputs[1]) ? 1 : 0;
    const ValueId epsilon = sum->inputs[number];
    const Node* mean = input_maker(*sum, 1 - number, "reduce_mean");
    if (!is_number(epsilon) || depends_[epsilon] || mean == nullptr ||
        !mean->attributes.get("keep_dims", false))
      return std::nullopt;
    const Node* squares = squares_of(mean->inputs[0], x);
    if (squares == nullptr) return std::nullopt;
    return Norm{.x = before_widening(x),
                .axes = mean->attributes.get("axes", std::vector<std::int64_t>{}),
                .epsilon = epsilon,
                .first = squares};
  }

  // The node that makes `id`, which is x x, whatever the precision.
  const Node* squares_of(ValueId id, ValueId x) const {
    const auto is_x = [&](ValueId input) { return before_widening(input) == before_widening(x); };
    if (const Node* square = maker(id, "square")) return is_x(square->inputs[0]) ? square : nullptr;
    if (const Node* power = maker(id, "pow"))
      return is_x(power->inputs[0]) && is_two(power->inputs[1]) ? power : nullptr;
    const Node* product = maker(id, "mul");
    return product != nullptr && is_x(product->inputs[0]) && is_x(product->inputs[1]) ? product : nullptr;
  }

  // A 2 that the traced code wrote down: nothing else has it, so that nothing changes it before a later run.
  bool is_two(ValueId id) const {
    const auto found = std::find_if(graph_.captured.begin(), graph_.captured.end(),
                                    [id](const auto& entry) { return entry.first == id; });
    return found != graph_.captured.end() && is_number(id) && found->second.buffer().use_count() == 1 &&
           found->second.cast(DType::float64).item<double>() == 2;
  }

  // Whether the mean runs over the last axes, which are those of gamma.
  static bool ends_with(const Shape& x, const Shape& gamma, std::vector<std::int64_t> axes) {
    for (std::int64_t& axis : axes)
      if (axis < 0) axis += static_cast<std::int64_t>(x.rank());
    std::sort(axes.begin(), axes.end());
    if (axes.empty() || gamma.rank() != axes.size()) return false;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t axis = x.rank() - axes.size() + i;
      if (axes[i] != static_cast<std::int64_t>(axis) || gamma[i] != x[axis]) return false;
    }
    return true;
  }
};

}  // namespace

void fuse_norms(Graph& graph, std::span<const ValueId> wrt) {
  if (!has(graph, "reduce_mean") || !(has(graph, "rsqrt") || has(graph, "sqrt"))) return;
  NormMatcher matcher(graph, wrt);
  write_over(graph, [&](const Node& last) { return matcher.norm(last); });
}

}  // namespace muster::graph
