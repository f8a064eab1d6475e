// The door of `nn`: cells, layers, losses, optimizers, initializers. They build graphs, they compute nothing.
//
// Ownership: children by shared_ptr, parameters shared; a tree of cells is used by one thread at a time.
#pragma once

#include "muster/nn/cell.h"          // IWYU pragma: export
#include "muster/nn/indexing.h"      // IWYU pragma: export
#include "muster/nn/initializers.h"  // IWYU pragma: export
#include "muster/nn/layers.h"        // IWYU pragma: export
#include "muster/nn/losses.h"        // IWYU pragma: export
#include "muster/nn/operators.h"     // IWYU pragma: export
#include "muster/nn/ops.h"           // IWYU pragma: export
#include "muster/nn/optimizers.h"    // IWYU pragma: export
