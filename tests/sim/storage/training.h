// Script that recovers, simulated: calls of so many steps, by the real RecoveringCall as Model goes about it.
// The state of a training is a hash that each step makes from the one before, and one that is the worker's
// own: so it can be said of each moment what they have to be.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "muster/train/recovering_call.h"

namespace muster::train::sim {

struct Script {
  std::vector<std::uint64_t> calls = {};  // steps of each
  std::uint64_t save_steps = 1;
  bool has_own_state = false;  // that nobody else can go on from
  bool keeps_memory = true;    // through a lost step: what is trained together, not in parts
};

// Of one worker.
struct State {
  std::uint64_t shared = 1;
  std::uint64_t own = 0;

  friend bool operator==(const State&, const State&) = default;
};

State first_state(const Script& script, std::uint32_t rank);
// `given`: by rank, what each has given to the step.
void make_step(State& state, const std::vector<std::uint64_t>& given);

// Who looks on.
struct Watch {
  // All have agreed to go on in the call behind so many steps.
  std::function<void(std::uint64_t call, std::uint64_t steps, const RecoveringCall::Start& start)> goes_on;
  // The state counts from here on. What is its own of it may be set right where that is not promised.
  std::function<void(std::uint64_t call, std::uint64_t steps, State& state, bool own_is_promised)> counts;
};

// The whole script, up to its end or an error.
Result<> run_script(Recovery& recovery, const Script& script, std::uint32_t rank, const Watch& watch);

}  // namespace muster::train::sim
