// Private to train: a state that the body of a recoverable loop keeps beside its parameters.
#pragma once

#include <optional>
#include <utility>

#include "muster/train/callback.h"

namespace muster::train {

// What the script keeps beside the parameters. While a body runs, which changes it at any time, a state that
// all workers share is the one of before the body: another worker makes the step from there.
class KeptState final : public Callback {
 public:
  explicit KeptState(CallbackPtr kept) : kept_(std::move(kept)) {}

  Result<> begin_body() {
    if (!kept_->shares_state()) return {};
    MUSTER_TRY(before_, kept_->state());
    return {};
  }
  void end_body() { before_.reset(); }

  Result<State> state() override { return before_ ? *before_ : kept_->state(); }
  Result<> load_state(const State& state) override { return kept_->load_state(state); }
  bool shares_state() const override { return kept_->shares_state(); }
  Result<> load_state_of_another(const State& state) override { return kept_->load_state_of_another(state); }

 private:
  CallbackPtr kept_;
  std::optional<State> before_;
};

}  // namespace muster::train
