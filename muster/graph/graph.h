// Public header of `graph`: what is computed. Values, parameters, the op table, tracing, gradients, compiled
// plans.
//
// Code runs once on traced Values and becomes a Graph (an immutable value); a Plan is the Graph compiled; a
// Function joins the two behind a cache. Ownership: Values and Parameters are shared handles; a Function owns
// its Plans. Threads: a Function, a Plan and the Parameters they use are used by one thread at a time;
// tensors that came out of them may be read anywhere.
#pragma once

#include "muster/graph/function.h"   // IWYU pragma: export
#include "muster/graph/nodes.h"      // IWYU pragma: export
#include "muster/graph/op.h"         // IWYU pragma: export
#include "muster/graph/parameter.h"  // IWYU pragma: export
#include "muster/graph/run.h"        // IWYU pragma: export
#include "muster/graph/scopes.h"     // IWYU pragma: export
#include "muster/graph/trace.h"      // IWYU pragma: export
#include "muster/graph/value.h"      // IWYU pragma: export
