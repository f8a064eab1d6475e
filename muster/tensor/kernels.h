// Second public header of `tensor`, for `graph` and `server` alone (tools/check_layout.py): the kernels,
// which compute, and the libraries of kernels.
//
// Kernels check nothing: graph's shape rules did. Threads: a kernel writes only what it is given to write,
// and takes the number of threads that it may use; a Primitive is run by one thread at a time.
#pragma once

#include "muster/tensor/batch_blocked/batch_blocked.h"    // IWYU pragma: export
#include "muster/tensor/format.h"                         // IWYU pragma: export
#include "muster/tensor/kernels/add_relu.h"               // IWYU pragma: export
#include "muster/tensor/kernels/along_axis.h"             // IWYU pragma: export
#include "muster/tensor/kernels/attention.h"              // IWYU pragma: export
#include "muster/tensor/kernels/batch_matmul.h"           // IWYU pragma: export
#include "muster/tensor/kernels/batch_norm.h"             // IWYU pragma: export
#include "muster/tensor/kernels/binary.h"                 // IWYU pragma: export
#include "muster/tensor/kernels/broadcast.h"              // IWYU pragma: export
#include "muster/tensor/kernels/conv2d.h"                 // IWYU pragma: export
#include "muster/tensor/kernels/conv3d.h"                 // IWYU pragma: export
#include "muster/tensor/kernels/copy.h"                   // IWYU pragma: export
#include "muster/tensor/kernels/dropout.h"                // IWYU pragma: export
#include "muster/tensor/kernels/elementwise.h"            // IWYU pragma: export
#include "muster/tensor/kernels/index.h"                  // IWYU pragma: export
#include "muster/tensor/kernels/layer_norm.h"             // IWYU pragma: export
#include "muster/tensor/kernels/matmul.h"                 // IWYU pragma: export
#include "muster/tensor/kernels/nll_loss.h"               // IWYU pragma: export
#include "muster/tensor/kernels/nonlinearity.h"           // IWYU pragma: export
#include "muster/tensor/kernels/pool2d.h"                 // IWYU pragma: export
#include "muster/tensor/kernels/reduce.h"                 // IWYU pragma: export
#include "muster/tensor/kernels/rms_norm.h"               // IWYU pragma: export
#include "muster/tensor/kernels/rotary.h"                 // IWYU pragma: export
#include "muster/tensor/kernels/softmax.h"                // IWYU pragma: export
#include "muster/tensor/kernels/softmax_cross_entropy.h"  // IWYU pragma: export
#include "muster/tensor/kernels/unary.h"                  // IWYU pragma: export
#include "muster/tensor/kernels/update.h"                 // IWYU pragma: export
#include "muster/tensor/kernels/update_adaptive.h"        // IWYU pragma: export
#include "muster/tensor/kernels/update_ftrl.h"            // IWYU pragma: export
#include "muster/tensor/kernels/vector_math.h"            // IWYU pragma: export
#include "muster/tensor/primitives.h"                     // IWYU pragma: export
