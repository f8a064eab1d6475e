// Private to train: modes of cells that a script switches at some steps and needs at others.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/base/base.h"
#include "muster/train/callback.h"
#include "muster/train/state.h"

namespace muster::train {

// Which cells train and which parameters want gradients. A script that switches them where an epoch begins or
// ends does so on all workers: who comes back in the middle of the epoch takes them from another one.
class CellModes final : public Callback {
 public:
  CellModes(const nn::CellPtr& network, std::vector<graph::ParameterPtr> parameters)
      : parameters_(std::move(parameters)) {
    cells_.emplace_back("", network);
    const nn::Cell::Children below = network->descendants();
    cells_.insert(cells_.end(), below.begin(), below.end());
  }

  // A digit for each cell, and one for each parameter.
  std::string text() const {
    std::string digits;
    for (const auto& [path, cell] : cells_) digits += cell->training() ? '1' : '0';
    for (const graph::ParameterPtr& parameter : parameters_) digits += parameter->requires_grad() ? '1' : '0';
    return digits;
  }
  // Of a network that has changed the parameters that do not fit are an error elsewhere, and a layer without
  // any may have come.
  void take(std::string_view digits) {
    if (digits.size() != cells_.size() + parameters_.size())
      return log::warning(
          fmt::format("the network had {} cells and parameters, and has {}: which cells train and which "
                      "parameters want gradients is as the script sets it",
                      digits.size(), cells_.size() + parameters_.size()));
    set_training(digits);
    digits.remove_prefix(cells_.size());
    for (const graph::ParameterPtr& parameter : parameters_) {
      parameter->set_requires_grad(digits.front() == '1');
      digits.remove_prefix(1);
    }
  }

  Result<State> state() override { return State{.text = StateValues().set("modes", text()).to_json()}; }
  Result<> load_state(const State& state) override {
    MUSTER_TRY(const StateValues values, StateValues::from_json(state.text));
    MUSTER_TRY(const std::string digits, values.text("modes"));
    take(digits);
    return {};
  }
  bool shares_state() const override { return true; }

 private:
  // set_train() takes a cell back to the plans that it had in that mode, and its cells with it, which come
  // behind it; again, for cells that are in two others.
  void set_training(std::string_view digits) const {
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t i = 0; i < cells_.size(); ++i) {
        nn::Cell& cell = *cells_[i].second;
        if (cell.training() != (digits[i] == '1')) cell.set_train(digits[i] == '1');
      }
  }

  nn::Cell::Children cells_;
  std::vector<graph::ParameterPtr> parameters_;
};

}  // namespace muster::train
