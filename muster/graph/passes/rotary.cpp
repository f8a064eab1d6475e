// Rotary positions that are written op by op: x cos + (-b, a) sin, with a and b the halves of x.
#include <optional>
#include <utility>
#include <vector>

#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/pattern.h"

namespace muster::graph {
namespace {

using Sizes = std::vector<std::int64_t>;

class RotaryMatcher : Pattern {
 public:
  RotaryMatcher(Graph& graph, std::span<const ValueId> wrt) : Pattern(graph, wrt) {}

  // The rotary positions that the sum `last` ends.
  std::optional<Nodes> rotary(const Node& last) {
    if (!is(last, "add")) return std::nullopt;
    return found_at(last, [&]() -> std::optional<Nodes> {
      for (const std::size_t plain : {0, 1})
        if (auto made = of_sum(last.inputs[plain], last.inputs[1 - plain])) return made;
      return std::nullopt;
    });
  }

  // What turns rows of heads that a transpose (0, 2, 1, 3) has exchanged turns them before it: attention then
  // reads them where they are.
  std::optional<Nodes> before_transpose(const Node& last) {
    if (!is(last, "rotary")) return std::nullopt;
    return found_at(last, [&]() -> std::optional<Nodes> {
      ValueId heads = last.inputs[0];
      const Node* transpose = maker(heads, "transpose");
      if (transpose == nullptr || heads != last.inputs[0] ||
          transpose->attributes.get("perm", Sizes{}) != Sizes{0, 2, 1, 3})
        return std::nullopt;
      const auto cos = by_rows(last.inputs[1]), sin = by_rows(last.inputs[2]);
      if (!cos || !sin) return std::nullopt;
      const auto turned = make("rotary", {transpose->inputs[0], *cos, *sin}, last.attributes);
      if (!turned) return std::nullopt;
      nodes_.push_back(node("transpose", {*turned}, transpose->attributes));
      nodes_.back().outputs = last.outputs;
      return nodes_;
    });
  }

 private:
  std::optional<Nodes> of_sum(ValueId plain, ValueId turned) {
    nodes_.clear();
    const Node* turning = maker(turned, "mul");
    const Node* scaling = maker(plain, "mul");
    if (turning == nullptr || scaling == nullptr) return std::nullopt;
    for (const std::size_t quarter : {0, 1})
      if (const std::optional<ValueId> x = turned_by_a_quarter(turning->inputs[quarter]))
        for (const std::size_t same : {0, 1})
          if (before_widening(scaling->inputs[same]) == before_widening(*x) &&
              !is_written_between(graph_, *scaling, *last_) && !is_written_between(graph_, *turning, *last_))
            return with_tables(scaling->inputs[same], scaling->inputs[1 - same],
                               turning->inputs[1 - quarter]);
    return std::nullopt;
  }

  std::optional<Nodes> with_tables(ValueId x, ValueId cos, ValueId sin) {
    const TensorType y = graph_.values[last_->outputs[0]];
    x = before_widening(x);
    if (is_narrower(x, y.dtype)) x = *in_dtype(x, y.dtype);
    const DType dtype = computed_in(graph_.values[x].dtype);
    const auto wide_cos = in_dtype(as_kept(cos, dtype), dtype),
               wide_sin = in_dtype(as_kept(sin, dtype), dtype);
    if (!wide_cos || !wide_sin) return std::nullopt;
    const auto made = make("rotary", {x, *wide_cos, *wide_sin});
    if (!made || graph_.values[*made].shape != y.shape) return std::nullopt;
    return ending(*made, y.dtype);
  }

  // x, of which `id` is (-b, a).
  std::optional<ValueId> turned_by_a_quarter(ValueId id) const {
    const Node* joined = maker(id, "concat");
    if (joined == nullptr || joined->inputs.size() != 2 || !is_last_axis(*joined, id)) return std::nullopt;
    const Node* minus = input_maker(*joined, 0, "neg");
    if (minus == nullptr) return std::nullopt;
    const std::optional<ValueId> first = half_of(joined->inputs[1], 0), second = half_of(minus->inputs[0], 1);
    return first && first == second ? first : std::nullopt;
  }

  // x, of whose last axis `id` is the first or the second half: of a slice, or of a split.
  std::optional<ValueId> half_of(ValueId id, std::size_t which) const {
    if (uses_.count[id] != 1 || wanted_[id] || !uses_.maker[id]) return std::nullopt;
    const Node& node = graph_.nodes[*uses_.maker[id]];
    if (node.placement != last_->placement) return std::nullopt;
    const Shape& whole = graph_.values[node.inputs[0]].shape;
    const Shape& part = graph_.values[id].shape;
    if (whole.rank() == 0 || part.rank() != whole.rank()) return std::nullopt;
    const std::size_t axis = whole.rank() - 1;
    if (2 * part[axis] != whole[axis]) return std::nullopt;
    if (is(node, "split"))
      return node.outputs.size() == 2 && node.outputs[which] == id && is_last_axis(node, node.inputs[0])
                 ? std::optional(node.inputs[0])
                 : std::nullopt;
    if (!is(node, "slice") || node.attributes.get("strides", Sizes(axis + 1, 1)) != Sizes(axis + 1, 1))
      return std::nullopt;
    Sizes begin(axis + 1, 0);
    begin[axis] = static_cast<std::int64_t>(which) * part[axis];
    Shape but_for_last = part;
    but_for_last[axis] = whole[axis];
    return but_for_last == whole && node.attributes.get("begin", Sizes{}) == begin
               ? std::optional(node.inputs[0])
               : std::nullopt;
  }

  bool is_last_axis(const Node& node, ValueId id) const {
    const auto rank = static_cast<std::int64_t>(graph_.values[id].shape.rank());
    const std::int64_t axis = node.attributes.get("axis", std::int64_t{0});
    return axis == -1 || axis == rank - 1;
  }

  // A table (samples, 1, rows, depth), of any fewer axes, as (samples, rows, 1, depth).
  std::optional<ValueId> by_rows(ValueId table) {
    const Shape shape = graph_.values[table].shape;
    const std::size_t rank = shape.rank();
    if (rank < 2) return table;
    if (rank > 4 || (rank >= 3 && shape[rank - 3] != 1)) return std::nullopt;
    Sizes sizes = shape.sizes();
    if (rank == 2)
      sizes.insert(sizes.begin() + 1, 1);
    else
      std::swap(sizes[rank - 3], sizes[rank - 2]);
    return make("reshape", {table}, {{"shape", sizes}});
  }
};

}  // namespace

void fuse_rotary(Graph& graph, std::span<const ValueId> wrt) {
  if (has(graph, "concat") && has(graph, "neg")) {
    RotaryMatcher matcher(graph, wrt);
    write_over(graph, [&](const Node& last) { return matcher.rotary(last); });
  }
  if (!has(graph, "rotary")) return;
  RotaryMatcher matcher(graph, wrt);
  write_over(graph, [&](const Node& last) { return matcher.before_transpose(last); });
}

}  // namespace muster::graph
