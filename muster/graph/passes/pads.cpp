// The gradient of a value that is cut into slices is a sum of their gradients, each padded to the whole: as
// many passes over zeros as there are slices. Where the slices cover it once, their gradients stand one
// behind the other.
#include <algorithm>
#include <optional>
#include <vector>

#include "muster/graph/ops/ops.h"
#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"

namespace muster::graph {
namespace {

// A padded value, and where it lies along the one axis on which it is smaller than the whole.
struct Piece {
  ValueId value = 0;
  std::size_t axis = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

std::optional<Piece> piece_of(const Graph& graph, const Node& pad) {
  const Shape& part = graph.values[pad.inputs[0]].shape;
  const Shape& whole = graph.values[pad.outputs[0]].shape;
  const auto begin = pad.attributes.get("begin", std::vector<std::int64_t>{});
  const auto strides = pad.attributes.get("strides", std::vector<std::int64_t>{});
  const bool has_gaps =
      std::any_of(strides.begin(), strides.end(), [](std::int64_t step) { return step != 1; });
  if (has_gaps || pad.attributes.get("value", 0.0) != 0) return std::nullopt;
  std::optional<Piece> found;
  for (std::size_t axis = 0; axis < whole.rank(); ++axis) {
    if (part[axis] == whole[axis]) continue;
    if (found) return std::nullopt;
    found = Piece{pad.inputs[0], axis, begin[axis], begin[axis] + part[axis]};
  }
  return found;
}

// Adds the pieces whose sum `id` is, which `last` is to read; false: it is no sum of pieces alone.
bool collect(Graph& graph, const Uses& uses, ValueId id, const Node& last, std::vector<Piece>& pieces) {
  if (const Node* const pad = sole_maker(graph, uses, id, *find_op("pad"))) {
    const std::optional<Piece> piece =
        is_written_between(graph, *pad, last) ? std::nullopt : piece_of(graph, *pad);
    if (piece) pieces.push_back(*piece);
    return piece.has_value();
  }
  const Node* const sum = sole_maker(graph, uses, id, add_op());
  return sum != nullptr && collect(graph, uses, sum->inputs[0], last, pieces) &&
         collect(graph, uses, sum->inputs[1], last, pieces);
}

// Whether `pieces`, in the order of their places, cover an axis of `size` once.
bool cover_once(const std::vector<Piece>& pieces, std::int64_t size) {
  std::int64_t end = 0;
  for (const Piece& piece : pieces) {
    if (piece.axis != pieces[0].axis || piece.begin != end) return false;
    end = piece.end;
  }
  return end == size;
}

}  // namespace

void fuse_pads(Graph& graph) {
  const Uses uses = uses_of(graph);
  // From the end: a sum of three takes the sum of two before that becomes a node of its own.
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    Node& node = graph.nodes[i];
    if (node.op != &add_op()) continue;
    std::vector<Piece> pieces;
    if (!collect(graph, uses, node.inputs[0], node, pieces) ||
        !collect(graph, uses, node.inputs[1], node, pieces))
      continue;
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    const std::size_t axis = pieces[0].axis;
    if (!cover_once(pieces, graph.values[node.outputs[0]].shape[axis])) continue;
    node.op = find_op("concat");
    node.inputs.clear();
    for (const Piece& piece : pieces) node.inputs.push_back(piece.value);
    node.attributes = {{"axis", static_cast<std::int64_t>(axis)}};
  }
  remove_dead(graph);
}

}  // namespace muster::graph
