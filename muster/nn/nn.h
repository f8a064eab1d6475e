// Public header of `nn`: cells, layers, losses, optimizers, initializers. They build graphs, they compute
// nothing.
//
// Ownership: children by shared_ptr, parameters shared; a tree of cells is used by one thread at a time.
// A constructor whose arguments do not fit throws an Exception, and so does a call whose tensors do not.
#pragma once

#include "muster/nn/activations.h"        // IWYU pragma: export
#include "muster/nn/amp.h"                // IWYU pragma: export
#include "muster/nn/attention.h"          // IWYU pragma: export
#include "muster/nn/cell.h"               // IWYU pragma: export
#include "muster/nn/clipping.h"           // IWYU pragma: export
#include "muster/nn/containers.h"         // IWYU pragma: export
#include "muster/nn/conv.h"               // IWYU pragma: export
#include "muster/nn/dense.h"              // IWYU pragma: export
#include "muster/nn/dropout.h"            // IWYU pragma: export
#include "muster/nn/embedding.h"          // IWYU pragma: export
#include "muster/nn/indexing.h"           // IWYU pragma: export
#include "muster/nn/initializers.h"       // IWYU pragma: export
#include "muster/nn/input_consumer.h"     // IWYU pragma: export
#include "muster/nn/lars.h"               // IWYU pragma: export
#include "muster/nn/losses.h"             // IWYU pragma: export
#include "muster/nn/module.h"             // IWYU pragma: export
#include "muster/nn/normalization.h"      // IWYU pragma: export
#include "muster/nn/operators.h"          // IWYU pragma: export
#include "muster/nn/ops.h"                // IWYU pragma: export
#include "muster/nn/optimizer.h"          // IWYU pragma: export
#include "muster/nn/optimizer_classes.h"  // IWYU pragma: export
#include "muster/nn/place.h"              // IWYU pragma: export
#include "muster/nn/pooling.h"            // IWYU pragma: export
#include "muster/nn/recurrent.h"          // IWYU pragma: export
#include "muster/nn/row_optimizer.h"      // IWYU pragma: export
#include "muster/nn/schedules.h"          // IWYU pragma: export
#include "muster/nn/windows.h"            // IWYU pragma: export
#include "muster/nn/wrap.h"               // IWYU pragma: export
