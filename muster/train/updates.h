// Private to train: updates of this process's parameters, watched so that no script trains wrongly without
// a word. A script that a job has started and that never called init() is stopped at its first update; and
// after some steps of each optimizer the workers say what their parameters are, for the scheduler to compare
// (ADR 29). Main thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>

#include "muster/base/base.h"
#include "muster/graph/graph.h"

namespace muster::train {

// An error where this process is one of a job (MS_ROLE), and `what` would go on without the others, since
// init() was never called.
Result<> require_init(std::string_view what);

// Of elements that are spread over the whole tensor: of parameters that drift apart nearly all do.
std::uint64_t hash_of_sample(const Tensor& values, std::uint64_t seed = 0);

// The batch of the step that was made, or that a loop by hand now makes: over a mesh the next report says a
// hash of it, since every worker is given all of it. Over stages only who reads has it: empty elsewhere.
void note_batch(std::span<const Tensor> batch);

// How many steps each optimizer has made, by the parameter that counts them.
std::map<graph::ParameterPtr, std::int64_t> steps_of_optimizers();
// All of them together.
std::int64_t steps_of_all_optimizers();
// Whether an optimizer that updates the parameter has made one.
bool has_been_updated(const graph::Parameter& parameter);

// Whether an optimizer has done a step that is to be reported, and reports it. Called before runs of plans,
// not before run UpdateWatch::look_at: no optimizer has come to its next step before.
void look_for_updates();

}  // namespace muster::train
