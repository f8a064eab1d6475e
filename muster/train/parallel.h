// Operators over a mesh of workers, which compute one batch together: docs/guide/parallel.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/nn/nn.h"
#include "muster/train/context.h"

namespace muster::train::parallel {

struct Axis {
  std::string name;
  std::int64_t size = 1;
};

// The workers as an array with named axes, the last of which varies fastest:
//
//   parallel::mesh({{"data", 2}, {"model", 2}}).value();                  // of 4 workers
//   parallel::shard(network.fc.weight, {"model", ""}).value();            // each trains its rows
//   Value forward(const Value& x) { return fc(parallel::shard(x, {"data", ""})); }
//
// After init(), before the network is made. All workers are then given the whole of one batch, and what
// shard() says is divided. In a process alone it has no effect. Without axes there is no mesh any more.
//
// With `stages` there are as many such meshes, and nn::Cell::place puts a cell of the network on one: worker
// w is in stage w mod stages.
//
// An error: the product of the sizes, times `stages`, is not the number of workers; a size is 0; an axis has
// no name or one that is taken; the parallel mode is data_parallel. Every worker calls it alike.
Result<> mesh(const std::vector<Axis>& axes, std::int64_t stages = 1);

// What cuts each dimension: an axis of the mesh; several, in its order, as "data+model"; "": it is whole.
using CutBy = std::vector<std::string>;

// `value`, divided over the mesh, in code that is traced. What is computed with it is divided likewise as far
// as the ops have a rule. Throws where there is no mesh or no such axis, or `cut_by` does not fit the shape.
nn::Value shard(const nn::Value& value, const CutBy& cut_by);
// From now on each worker holds its piece of the parameter, and of the state of its optimizer.
Result<> shard(const nn::ParameterPtr& parameter, const CutBy& cut_by);

struct PlanSettings {
  // The batch is cut into so many parts, weights into so many of `model`: their product is the number of
  // workers. Nothing: rank 0 decides for all at the first step that trains, by times that are measured then.
  std::optional<std::int64_t> data = {};
  std::int64_t model = 1;
  Zero zero = {};  // level 0, 1 or 3: what `data` also shares
  // That a worker may need at its peak, by prediction, where it is decided.
  std::optional<std::size_t> memory_bytes = {};
};
// Divides a step that has no layout of its own: `parallel::plan({.data = 2, .model = 2}).value()` is all that
// a program needs, as `muster plan` says it. After init(), before the network is made.
Result<> plan(const PlanSettings& settings = {});

}  // namespace muster::train::parallel
