// Private to train: modes that the body of a recoverable loop switches at some steps and needs at others.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "muster/train/callback.h"
#include "muster/train/state.h"

namespace muster::train {

// Which cells train and which parameters want gradients. A body that switches them where an epoch begins or
// ends does so on all workers: who comes back in the middle of the epoch takes them from another one.
class CellModes final : public Callback {
 public:
  CellModes(const nn::CellPtr& network, std::vector<graph::ParameterPtr> parameters)
      : cells_(network->descendants()), parameters_(std::move(parameters)) {
    cells_.emplace_back("", network);
  }

  Result<State> state() override {
    std::string training;
    std::string wanting;
    for (const auto& [path, cell] : cells_) training += cell->training() ? '1' : '0';
    for (const graph::ParameterPtr& parameter : parameters_)
      wanting += parameter->requires_grad() ? '1' : '0';
    return State{.text = StateValues().set("training", training).set("requires_grad", wanting).to_json()};
  }
  Result<> load_state(const State& state) override {
    MUSTER_TRY(const StateValues values, StateValues::from_json(state.text));
    MUSTER_TRY(const std::string training, values.text("training"));
    MUSTER_TRY(const std::string wanting, values.text("requires_grad"));
    if (training.size() != cells_.size() || wanting.size() != parameters_.size())
      return fail(Code::invalid_argument,
                  fmt::format("recoverable: the network had {} cells and {} parameters, and has {} and {}",
                              training.size(), wanting.size(), cells_.size(), parameters_.size()));
    for (std::size_t i = 0; i < cells_.size(); ++i) set_training(*cells_[i].second, training[i] == '1');
    for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i]->set_requires_grad(wanting[i] == '1');
    return {};
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
