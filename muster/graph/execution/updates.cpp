#include "muster/graph/execution/updates.h"

#include "muster/graph/passes/passes.h"
#include "muster/graph/passes/uses.h"
#include "muster/tensor/kernels.h"

namespace muster::graph {

bool is_update(const Op& op) { return !op.kernels.empty() && op.kernels.back().run_part != nullptr; }

namespace {

// Updates that wait for a later place, and what they touch.
class Waiting {
 public:
  explicit Waiting(const Graph& graph)
      : roots_(roots_of(graph)), read_(graph.values.size()), written_(graph.values.size()) {}

  // Whether `node` must stay behind them: it reads what they write, or writes what they touch.
  bool hold(const Node& node) const {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId root = roots_[node.inputs[i]];
      if (written_[root] || (read_[root] && node.op->writes(i))) return true;
    }
    return false;
  }

  void add(Node node) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      (node.op->writes(i) ? written_ : read_)[roots_[node.inputs[i]]] = true;
    nodes_.push_back(std::move(node));
  }

  void release(std::vector<Node>& to) {
    for (Node& node : nodes_) {
      for (const ValueId id : node.inputs) read_[roots_[id]] = written_[roots_[id]] = false;
      to.push_back(std::move(node));
    }
    nodes_.clear();
  }

 private:
  std::vector<ValueId> roots_;  // by value
  std::vector<bool> read_;      // by root
  std::vector<bool> written_;   // likewise
  std::vector<Node> nodes_;
};

}  // namespace

void gather_updates(Graph& graph) {
  Waiting waiting(graph);
  std::vector<Node> ordered;
  ordered.reserve(graph.nodes.size());
  for (Node& node : graph.nodes) {
    if (waiting.hold(node)) waiting.release(ordered);
    if (is_update(*node.op))
      waiting.add(std::move(node));
    else
      ordered.push_back(std::move(node));
  }
  waiting.release(ordered);
  graph.nodes = std::move(ordered);
}

std::size_t joined_updates(std::span<const Node> nodes, std::span<const Chosen> chosen) {
  std::size_t count = 1;
  // One for 16-bit numbers, which computes in float32, has no parts.
  if (!is_update(*nodes[0].op) || chosen[0].kernel == nullptr || chosen[0].kernel->run_part == nullptr)
    return count;
  while (count < nodes.size() && chosen[count].kernel == chosen[0].kernel) ++count;
  return count;
}

Updates join_updates(const Graph& graph, std::span<const Node> nodes, std::span<const Chosen> chosen) {
  Updates made{.kernel = *chosen[0].kernel, .parts = {}, .ends = {}};
  std::size_t address = 0;
  std::int64_t end = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    made.parts.push_back({chosen[i].prepared.settings, address, node.inputs.size()});
    address += node.inputs.size() + node.outputs.size();
    end += graph.values[node.inputs[0]].shape.elements();
    made.ends.push_back(end);
  }
  return made;
}

void run_updates(const KernelCall& call) {
  const auto& updates = call.setting<Updates>();
  const auto call_of = [&](const Updates::Part& part) {
    KernelCall own = call;
    own.inputs = call.inputs + part.first_address;
    own.outputs = own.inputs + part.inputs;
    own.settings = part.settings.get();
    return own;
  };
  kernels::for_each_part(updates.ends, call.threads,
                         [&](std::size_t part, std::int64_t begin, std::int64_t end) {
                           updates.kernel.run_part(call_of(updates.parts[part]), begin, end);
                         });
  if (updates.kernel.finish == nullptr) return;
  for (const Updates::Part& part : updates.parts) updates.kernel.finish(call_of(part));
}

}  // namespace muster::graph
