// Private to train: modes of cells that a script switches at some steps and needs at others.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/train/callback.h"
#include "muster/train/state.h"

namespace muster::train {

// Which cells train and which parameters want gradients. A script that switches them where an epoch begins or
// ends does so on all workers: who comes back in the middle of the epoch takes them from another one.
class CellModes final : public Callback {
 public:
  CellModes(const nn::CellPtr& network, std::vector<graph::ParameterPtr> parameters)
      : cells_(network->descendants()), parameters_(std::move(parameters)) {
    cells_.emplace_back("", network);
  }

  // A digit for each cell, and one for each parameter.
  std::string text() const {
    std::string digits;
    for (const auto& [path, cell] : cells_) digits += cell->training() ? '1' : '0';
    for (const graph::ParameterPtr& parameter : parameters_) digits += parameter->requires_grad() ? '1' : '0';
    return digits;
  }
  Result<> take(std::string_view digits) {
    if (digits.size() != cells_.size() + parameters_.size())
      return fail(Code::invalid_argument, fmt::format("it had {} cells and parameters, and the script has {}",
                                                      digits.size(), cells_.size() + parameters_.size()));
    for (const auto& [path, cell] : cells_) {
      set_training(*cell, digits.front() == '1');
      digits.remove_prefix(1);
    }
    for (const graph::ParameterPtr& parameter : parameters_) {
      parameter->set_requires_grad(digits.front() == '1');
      digits.remove_prefix(1);
    }
    return {};
  }

  Result<State> state() override { return State{.text = StateValues().set("modes", text()).to_json()}; }
  Result<> load_state(const State& state) override {
    MUSTER_TRY(const StateValues values, StateValues::from_json(state.text));
    MUSTER_TRY(const std::string digits, values.text("modes"));
    return take(digits);
  }
  bool shares_state() const override { return true; }

 private:
  // The cells below have modes of their own. One that is set anew would cost a cell its plans.
  static void set_training(nn::Cell& cell, bool training) {
    if (cell.training() == training) return;
    nn::CellState state = cell.state();
    state.training = training;
    cell.restore(std::move(state));
  }

  nn::Cell::Children cells_;
  std::vector<graph::ParameterPtr> parameters_;
};

}  // namespace muster::train
