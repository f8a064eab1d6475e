// `muster explain`: a script that is started with MUSTER_EXPLAIN shows its plans, or its traces, instead of
// training.
//
// plan: the script runs alone, as the one worker of a job without a scheduler, up to its first step. A
// Model's step is shown before it runs. A loop written by hand runs once, and what it ran is shown when a
// plan would run again. Then the process ends with status 0. A script that comes to its end before that shows
// what it has.
// A network that is placed (Cell::place) is also shown as it would be divided over its workers; with
// MUSTER_EXPLAIN_SVG as a picture too, in the file of that name.
// trace: the script runs alone and to its end, and each trace is shown when it is made.
// search: as plan, but of the first step that trains: how it is best divided over the workers that
// MUSTER_PLAN names, for `muster plan`. A script that comes to its end before that fails.
#pragma once

#include <cstdint>
#include <span>

#include "muster/base/base.h"
#include "muster/graph/explanation.h"
#include "muster/graph/graph.h"

namespace muster::train {

enum class ExplainMode { off, plan, trace, search };

// Whether the first step is shown instead of taken.
bool shows_steps();

// Says to the command that started this script (`muster explain`, `plan`, `profile`) that it uses Muster: a
// byte more in the file MUSTER_USE_FILE.
void report_use(const Environment& environment);

// What MUSTER_EXPLAIN of this process says. The first call begins to watch the functions.
ExplainMode explain_mode();

// Of how many workers this process is shown as the first: MUSTER_EXPLAIN_WORKERS where plans are shown,
// else 1. Their plans are made and not run.
std::uint32_t explained_workers();

// Prints the explanations, or what is best, and ends the process.
[[noreturn]] void end_explained(std::span<const graph::Explanation> explanations);

}  // namespace muster::train
