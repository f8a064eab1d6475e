// Private to train: losses that are NaN or infinite, and which step it is.
#pragma once

#include <cstdint>

namespace muster::train {

// While it lives, a training of a Model runs: it knows its steps. A loss that is no number is told once in
// it.
class ModelSteps {
 public:
  // `step` outlives this: while a step is made it is its number, from 1.
  explicit ModelSteps(const std::int64_t& step);
  ~ModelSteps();
  ModelSteps(const ModelSteps&) = delete;
  ModelSteps& operator=(const ModelSteps&) = delete;

 private:
  const std::int64_t* outer_;
  bool told_outside_;
};

// A loop by hand has made a step or, where it is not `is_done`, begins one. Nothing while a Model trains,
// which tells of its own. All loops of a process count together: numbers that fall say that a training begins
// anew.
void note_step_by_hand(bool is_done);
// Before each run of a plan or an op. A loop by hand needs no reducer in a job of one worker, nor over a
// mesh: where nothing has told of a step, those are told that the optimizers have counted.
void note_counted_steps();

}  // namespace muster::train
