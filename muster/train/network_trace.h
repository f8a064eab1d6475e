// Public for python: a network as a graph, for files that show it.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "muster/base/base.h"
#include "muster/graph/plan.h"
#include "muster/nn/nn.h"
#include "muster/telemetry/telemetry.h"

namespace muster::train {

// While it lives, nodes know the cells and lines that they come from, for errors.
class OriginScope {
 public:
  OriginScope() { graph::set_anomaly_detection(true); }
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;
  ~OriginScope() { graph::set_anomaly_detection(before_); }

 private:
  const bool before_ = graph::detects_anomalies();
};

// While it lives, a tree of cells is not training.
class InferenceScope {
 public:
  explicit InferenceScope(nn::Cell& cell) : cell_(cell), root_(cell.training()) {
    for (const auto& [name, below] : cell.descendants()) modes_.emplace_back(below, below->training());
    cell.set_train(false);
  }
  InferenceScope(const InferenceScope&) = delete;
  InferenceScope& operator=(const InferenceScope&) = delete;
  // Parents come before their children.
  ~InferenceScope() {
    cell_.set_train(root_);
    for (const auto& [below, training] : modes_) below->set_train(training);
  }

 private:
  nn::Cell& cell_;
  const bool root_;
  std::vector<std::pair<nn::CellPtr, bool>> modes_;
};

// What `cell` computes of inputs of these types, as it is; its nodes know their cells and lines.
Result<graph::Graph> trace_network(nn::Cell& cell, std::span<const graph::TensorType> types);

// As TensorBoard draws it: cells are boxes, parameters and inputs are nodes too.
std::vector<telemetry::GraphNode> nodes_to_draw(const graph::Graph& graph);

}  // namespace muster::train
