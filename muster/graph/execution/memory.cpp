#include "muster/graph/execution/memory.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "muster/graph/passes/uses.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {

std::size_t aligned(std::size_t bytes, std::size_t to = Buffer::alignment_bytes) {
  return (bytes + to - 1) / to * to;
}

struct Block {
  std::size_t first = 0;  // node that makes it
  std::size_t last = 0;   // last node that needs it
  std::size_t bytes = 0;
  std::size_t offset_bytes = 0;

  bool meets(const Block& other) const { return first <= other.last && other.first <= last; }
};

// Greedy by size: the largest first, each at the lowest offset that is free during its life.
std::size_t place(std::vector<Block>& blocks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<const Block*> placed;  // by offset
  std::size_t total = 0;
  for (const std::size_t index : order) {
    Block& block = blocks[index];
    std::size_t at = 0;
    for (const Block* other : placed) {
      if (!block.meets(*other)) continue;
      if (at + block.bytes <= other->offset_bytes) break;
      at = std::max(at, other->offset_bytes + other->bytes);
    }
    block.offset_bytes = at;
    total = std::max(total, at + block.bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), &block,
                         [](const Block* a, const Block* b) { return a->offset_bytes < b->offset_bytes; }),
        &block);
  }
  return total;
}

class Planner {
 public:
  Planner(const Graph& graph, const Sizes& sizes, const Overlap& overlap)
      : graph_(graph),
        sizes_(sizes),
        overlap_(overlap),
        root_(roots_of(graph)),
        maker_(graph.values.size()),
        last_use_(graph.values.size(), 0),
        in_use_until_(graph.values.size(), 0),
        laid_side_by_side_(graph.nodes.size(), false) {
    layout_.values.resize(graph.values.size());
  }

  Layout run() {
    place_outside();
    find_lives();
    place_side_by_side();
    place_outputs();
    reuse_inputs();
    place_arena();
    for (ValueId id = 0; id < root_.size(); ++id) layout_.values[id] = layout_.values[root_of(id)];
    return std::move(layout_);
  }

 private:
  ValueId root_of(ValueId id) const {
    while (root_[id] != id) id = root_[id];
    return id;
  }

  void place_outside() {
    using Kind = Location::Kind;
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      layout_.values[graph_.inputs[i]] = {Kind::input, i, 0};
    for (std::size_t i = 0; i < graph_.captured.size(); ++i)
      layout_.values[graph_.captured[i].first] = {Kind::captured, i, 0};
    for (std::size_t i = 0; i < graph_.parameters.size(); ++i)
      layout_.values[graph_.parameters[i].first] = {Kind::parameter, i, 0};
  }

  void find_lives() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      for (const ValueId id : node.inputs) live(root_of(id), i);
      for (const ValueId id : node.outputs) {
        live(root_of(id), i);
        if (root_[id] == id) maker_[id] = i;
      }
    }
  }

  // Node `i` uses what `root` is; if it is a call, until the call is joined.
  void live(ValueId root, std::size_t i) {
    last_use_[root] = i;
    in_use_until_[root] = std::max(in_use_until_[root], overlap_.joins[i]);
  }

  void place_side_by_side() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.op->sharing != Sharing::side_by_side || is_output_alone(node)) continue;
      laid_side_by_side_[i] = true;
      if (leaves_side_by_side(node)) continue;
      std::size_t offset = aligned(layout_.buckets_bytes);
      for (std::size_t k = 0; k < node.outputs.size(); ++k) {
        const Location location{Location::Kind::bucket, 0, offset};
        layout_.values[node.outputs[k]] = location;
        const ValueId from = root_of(node.inputs[k]);
        if (ends_in(i, from)) layout_.values[from] = location;  // given twice: at the first place
        offset += graph_.values[node.outputs[k]].size_bytes();
      }
      layout_.buckets_bytes = offset;
    }
  }

  // One output that leaves the graph is best written where it leaves it.
  bool is_output_alone(const Node& node) const { return node.outputs.size() == 1 && leaves(node.outputs[0]); }

  // What leaves the graph as it would lie here is written where it leaves, too.
  bool leaves_side_by_side(const Node& node) const {
    const auto first = std::find(graph_.outputs.begin(), graph_.outputs.end(), node.outputs[0]);
    const auto begin = static_cast<std::size_t>(first - graph_.outputs.begin());
    const std::size_t count = node.outputs.size();
    if (begin + count > graph_.outputs.size()) return false;
    const bool in_order = std::equal(node.outputs.begin(), node.outputs.end(), first);
    const auto holds_all = [&](const OutputRange& range) {
      return range.first <= begin && begin + count <= range.first + range.count;
    };
    return in_order && std::any_of(graph_.contiguous.begin(), graph_.contiguous.end(), holds_all) &&
           std::none_of(node.outputs.begin(), node.outputs.end(),
                        [&](ValueId id) { return leaves_again(id); });
  }

  bool leaves_again(ValueId root) const {
    return std::count_if(graph_.outputs.begin(), graph_.outputs.end(),
                         [&](ValueId id) { return root_of(id) == root; }) > 1;
  }

  bool leaves(ValueId root) const {
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(),
                       [&](ValueId id) { return root_of(id) == root; });
  }

  // Whether what `root` is ends in node `i`, so that a result may lie over it.
  bool ends_in(std::size_t i, ValueId root) const {
    return last_use_[root] == i && in_arena(root) && !leaves(root);
  }

  // Each range of contiguous outputs gets one buffer, every other output its own.
  void place_outputs() {
    std::vector<bool> in_range(graph_.outputs.size(), false);
    layout_.outputs.resize(graph_.outputs.size());
    for (const OutputRange& range : graph_.contiguous) {
      if (range.count == 0) continue;
      std::size_t offset = 0;
      for (std::size_t i = range.first; i < range.first + range.count; ++i) {
        const TensorType& type = graph_.values[graph_.outputs[i]];
        offset = aligned(offset, size_bytes(type.dtype));
        layout_.outputs[i] = {Location::Kind::output, layout_.buffers_bytes.size(), offset};
        offset += type.size_bytes();
        in_range[i] = true;
      }
      layout_.buffers_bytes.push_back(offset);
    }
    layout_.ranges = layout_.buffers_bytes.size();
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      if (in_range[i]) continue;
      layout_.outputs[i] = {Location::Kind::output, layout_.buffers_bytes.size(), 0};
      layout_.buffers_bytes.push_back(graph_.values[graph_.outputs[i]].size_bytes());
    }
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const ValueId root = root_of(graph_.outputs[i]);
      if (maker_[root] && layout_.values[root].kind == Location::Kind::arena)
        layout_.values[root] = layout_.outputs[i];
      else
        layout_.copies.push_back({graph_.outputs[i], i});
    }
  }

  bool in_arena(ValueId root) const {
    return maker_[root].has_value() && layout_.values[root].kind == Location::Kind::arena;
  }

  // Elementwise nodes write over an input after its last use.
  void reuse_inputs() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.op->sharing != Sharing::reuse) continue;
      const ValueId from = root_of(node.inputs[0]);
      const ValueId to = root_of(node.outputs[0]);
      const bool others = std::any_of(node.inputs.begin() + 1, node.inputs.end(),
                                      [&](ValueId id) { return root_of(id) == from; });
      if (others || !in_arena(from) || !in_arena(to) || last_use_[from] != i) continue;
      if (in_use_until_[from] > i) continue;
      if (sizes_.values_bytes[from] != sizes_.values_bytes[to]) continue;
      root_[to] = from;
      last_use_[from] = last_use_[to];
      in_use_until_[from] = in_use_until_[to];
    }
  }

  void place_arena() {
    std::vector<Block> blocks;
    std::vector<ValueId> owners;
    for (ValueId id = 0; id < root_.size(); ++id) {
      if (root_[id] != id || !in_arena(id)) continue;
      blocks.push_back(
          {*maker_[id], last_of(last_use_[id], in_use_until_[id]), aligned(sizes_.values_bytes[id]), 0});
      owners.push_back(id);
    }
    for (std::size_t i = 0; i < sizes_.scratch_bytes.size(); ++i) {
      // What lies side by side needs no memory to be put there.
      const std::size_t bytes = laid_side_by_side_[i] ? 0 : sizes_.scratch_bytes[i];
      blocks.push_back({i, last_of(i, overlap_.joins[i]), aligned(bytes), 0});
    }
    layout_.arena_bytes = place(blocks);
    for (std::size_t i = 0; i < owners.size(); ++i)
      layout_.values[owners[i]].offset_bytes = blocks[i].offset_bytes;
    for (std::size_t i = owners.size(); i < blocks.size(); ++i)
      layout_.scratch_offset_bytes.push_back(blocks[i].offset_bytes);
  }

  // The last node during which something is needed, by its last user and by the calls that use it.
  static std::size_t last_of(std::size_t last_use, std::size_t in_use_until) {
    return std::max(last_use + 1, in_use_until) - 1;
  }

  const Graph& graph_;
  const Sizes& sizes_;
  const Overlap& overlap_;
  Layout layout_;
  std::vector<ValueId> root_;
  std::vector<std::optional<std::size_t>> maker_;  // by root value: the node that makes it
  std::vector<std::size_t> last_use_;              // by root value
  std::vector<std::size_t> in_use_until_;  // by root value: the node that joins the last call using it
  std::vector<bool> laid_side_by_side_;    // by node
};

}  // namespace

Layout plan_memory(const Graph& graph, const Sizes& sizes, const Overlap& overlap) {
  return Planner(graph, sizes, overlap).run();
}

}  // namespace muster::graph
