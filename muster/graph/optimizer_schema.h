// Schema of an optimizer: what its class takes, what it keeps for each parameter, and what its update reads.
//
// It is a part of the row of the update, and the only description of the class: nn::Adam in C++,
// muster.nn.Adam and mindspore.nn.Adam in Python are made from it.
#pragma once

#include <string_view>
#include <vector>

#include "muster/graph/attributes.h"
#include "muster/graph/schema.h"

namespace muster::graph {

// One parameter beside each updated one, with the name "<name>.<parameter>", under which checkpoints hold it.
struct OptimizerState {
  std::string_view name;
  double initial = 0;
  std::string_view initial_from = {};  // the argument that it begins as, instead of `initial`
  std::string_view kept_with = {};     // the argument without which (false, or 0) it is not kept
  bool is_scalar = false;              // one float32, whatever the parameter is
};

struct OptimizerSchema {
  std::string_view name = {};  // of the class; empty: the op is no update of an optimizer
  std::string_view documentation = {};
  // In Python's order. `learning_rate`, `weight_decay` and `loss_scale` are those of every optimizer:
  // numbers, lists and schedules, cells. The others are attributes of the update.
  std::vector<Argument> arguments = {};
  std::vector<OptimizerState> states = {};
  // What the update reads behind parameter, gradient and learning rate: states, which are left away where
  // they are not kept, and "global_step", the number of steps done. Empty: the states in their order.
  std::vector<std::string_view> inputs = {};
  // Whether weight decay is a part of the formula, instead of joining the gradient. Where it changes with the
  // step, it is the last input then, a float32 ().
  bool decays_itself = false;
  // What must hold between arguments. Null: nothing.
  Result<> (*check)(const Attributes& arguments) = nullptr;

  bool exists() const { return !name.empty(); }
};

}  // namespace muster::graph
