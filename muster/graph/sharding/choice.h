// StepLayout: how a whole step is divided over a mesh of workers, without a layout in the script. Public for
// train.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "muster/graph/layout.h"
#include "muster/graph/nodes.h"

namespace muster::graph {

// Workers as an array of `data` by `model`: the batch is cut by the first, weights by the second.
struct StepLayout {
  std::uint32_t data = 1;
  std::uint32_t model = 1;
  // Above 0: the optimizer's state is cut further by `data`, and gradients are summed up into its pieces:
  // levels 1 and 2 are one. 3: parameters, too, and each use of one gathers it.
  std::int64_t zero_level = 0;
  std::int64_t zero_threshold_bytes = std::int64_t{64} << 10;

  std::uint32_t workers() const { return data * model; }
  std::string mesh_text() const;  // "data=2,model=4", as the op `shard` has it
  friend bool operator==(const StepLayout&, const StepLayout&) = default;
};

// The samples of a step: the first dimension of its inputs. Nothing where they have none.
std::optional<std::int64_t> samples_of(const Graph& graph);

// How the weights of products and convolutions are cut by `model`, in program order: by what they give where
// what comes in is whole, and by what they sum up where that is cut, so that every second one ends in one
// all_reduce. A bias follows. Those that are divided already stay as they are; others are not in it.
std::map<const Parameter*, TensorLayout> layouts_of_weights(const Graph& graph, const StepLayout& layout);

// The same, and with zero_level 3 what `data` cuts of parameters that are trained.
std::map<const Parameter*, TensorLayout> layouts_of_parameters(const Graph& graph, const StepLayout& layout);

// Gathers what `data` cuts of parameters for each node that reads one, for this rank: forward and backward,
// so that nothing is kept whole from one to the other.
void gather_for_use(Graph& graph, const StepLayout& layout, std::uint32_t rank);

// Cuts the inputs that have the samples of the batch, as the op `shard` does, for this rank.
void cut_samples(Graph& graph, const StepLayout& layout, std::uint32_t rank);

// Over a mesh the state of an optimizer is cut as its parameter is, and along the first dimension by the axes
// that do not cut that; null: as the parameter is, perhaps not at all.
std::optional<TensorLayout> layout_of_state(const Parameter& parameter, const MeshPtr& mesh,
                                            std::int64_t threshold_bytes);

// All of the above on a graph whose parameters are its own (cost/step_times.h), for rank 0.
void divide_step(Graph& graph, const StepLayout& layout);

}  // namespace muster::graph
