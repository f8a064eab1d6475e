// Private to train: modes of cells as they were before a callback evaluated within a training.
#pragma once

#include <optional>
#include <string>

#include "muster/train/cell_modes.h"
#include "muster/train/process.h"

namespace muster::train {

// A training of a Model is under way.
class TrainingUnderWay {
 public:
  TrainingUnderWay() { ++process().trainings; }
  ~TrainingUnderWay() { --process().trainings; }
  TrainingUnderWay(const TrainingUnderWay&) = delete;
  TrainingUnderWay& operator=(const TrainingUnderWay&) = delete;
};

// An evaluation or prediction, which switches its network to another mode: the next step of a training goes
// on in the one of before. Behind an evaluation by itself the network stays as that has left it.
class KeptModes {
 public:
  explicit KeptModes(const nn::CellPtr& network) {
    if (network == nullptr || process().trainings == 0) return;
    modes_.emplace(network, std::vector<graph::ParameterPtr>{});
    before_ = modes_->text();
  }
  ~KeptModes() {
    if (modes_) modes_->take(before_);
  }
  KeptModes(const KeptModes&) = delete;
  KeptModes& operator=(const KeptModes&) = delete;

 private:
  std::optional<CellModes> modes_;
  std::string before_;
};

}  // namespace muster::train
