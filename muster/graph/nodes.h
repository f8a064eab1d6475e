// Graph: what is computed, as a value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/graph/op.h"
#include "muster/graph/parameter.h"

namespace muster::graph {

struct Placement {
  std::uint32_t rank = 0;  // of RunContext::stages
  // What was placed and where in the code, for people: "LeNet 'conv1', lenet.py:31".
  std::string origin;
};
using PlacementPtr = std::shared_ptr<const Placement>;

// Where a node comes from, for people. Known where anomalies are detected (trace.h).
struct Origin {
  std::string cell;          // "Conv2d 'layer1.0.conv'"; empty: none
  std::string line;          // "net.py:31"; empty: unknown
  std::string_view passed;   // of the way back: the op whose gradient it is a part of; empty: of none
  bool is_backward = false;  // cell and line are those of the way forward
};
using OriginPtr = std::shared_ptr<const Origin>;

// Which stage of a placed network is wanted, out of how many: each worker computes one.
struct StageIndex {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;  // one: everything runs here

  friend bool operator==(const StageIndex&, const StageIndex&) = default;
};

using ValueId = std::uint32_t;

struct Node {
  const Op* op = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  PlacementPtr placement = nullptr;  // null: wherever it suits
  OriginPtr origin = nullptr;        // null: unknown
  // Of those with one number other than 0 the backward pass computes again what it needs (RecomputeScope).
  std::uint32_t recompute = 0;
  // In a plan: it came behind all losses of the graph that was traced, before a part of it was taken.
  bool is_behind_losses = false;
};

// A gradient that code gives itself, instead of that of what was computed (own_gradient.h).
struct GradientRule;

// Where a graph has one.
struct OwnGradient {
  std::size_t end = 0;  // what it stands for are nodes before this one
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;  // each made by a node, and for this alone
  std::shared_ptr<const GradientRule> rule;
};

// Outputs [first, first + count) that lie in one buffer without gaps.
struct OutputRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

// What a divided network needs to know of an output.
struct OutputNote {
  std::string name;         // for people: "the gradient of 'conv1.weight'"
  bool everywhere = false;  // every worker gets it, not only the one that makes it
};

// Nodes in program order. Immutable once made: passes work on copies.
struct Graph {
  std::string name;
  std::vector<TensorType> values;  // by ValueId
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;
  std::vector<std::pair<ValueId, Tensor>> captured;  // tensors that the traced code held; read at each run
  std::vector<std::pair<ValueId, ParameterPtr>> parameters;
  std::vector<ValueId> outputs;
  std::vector<OutputRange> contiguous;
  std::vector<OutputNote> notes;                   // by output; empty: there is nothing to say
  std::vector<OwnGradient> own_gradients;          // in the order of their ends
  std::vector<ValueId> losses;                     // what gradients were taken of
  std::shared_ptr<const DividedOps> divided = {};  // null: it is whole, or not divided yet
};

// Which nodes lie behind all losses: passes forget these, and a division over workers takes parts of the
// graph.
void note_losses(Graph& graph);

// One line for each node: "%4 float32 (32, 10) = relu(%3)".
std::string to_string(const Graph& graph);

}  // namespace muster::graph
