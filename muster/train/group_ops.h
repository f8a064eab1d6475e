// Calls of all workers, or of a group of some, as ops: in traced code with gradients, outside of it at once.
#pragma once

#include <cstdint>
#include <string>

#include "muster/base/base.h"
#include "muster/nn/nn.h"

namespace muster::train {

// Every worker of `group` (create_group; empty: all of the job) calls them at the same place, with a tensor
// of the same type. Ranks are those in the group. In a process without a cluster they are calls of one
// worker.
//
//   const Value hits = train::all_reduce(mine);  // of all workers; hits.tensor() has the numbers
//
// Exceptions name a group, a rank or a dtype that does not fit, and a worker that is gone.

// The tensors joined element by element. 16-bit floats are added in float32 and rounded once.
nn::Value all_reduce(const nn::Value& x, Reduction reduction = Reduction::sum, const std::string& group = "");
// The tensors (n, ...) one after another, in the order of the ranks: (workers times n, ...).
nn::Value all_gather(const nn::Value& x, const std::string& group = "");
// This worker's block of all_reduce: the first axis of x (workers times n, ...) is cut into as many; (n,
// ...).
nn::Value reduce_scatter(const nn::Value& x, Reduction reduction = Reduction::sum,
                         const std::string& group = "");
// Block i of x (workers times n, ...) goes to worker i; what comes has the shape of x.
nn::Value all_to_all(const nn::Value& x, const std::string& group = "");
// The tensor of worker `root`; those of the others say shape and dtype.
nn::Value broadcast(const nn::Value& x, std::int64_t root = 0, const std::string& group = "");
// What all_reduce gives on worker `root`, zeros on the others.
nn::Value reduce(const nn::Value& x, Reduction reduction = Reduction::sum, std::int64_t root = 0,
                 const std::string& group = "");

// x goes to worker `to`, which gets it by receive() with the same tag, 0 or more. Gives x: what the other
// worker's receive passes back is added to the gradient of that.
nn::Value send(const nn::Value& x, std::int64_t to, std::int64_t tag = 0, const std::string& group = "");
// What worker `from` sends with this tag: a tensor of the shape and dtype of `like`, through which the
// gradient goes back.
nn::Value receive(const nn::Value& like, std::int64_t from, std::int64_t tag = 0,
                  const std::string& group = "");

}  // namespace muster::train
