// Public header of `data`: from files to batches.
//
// A Dataset describes rows and what is done to them; Dataset::iterate gives one pass over them, made ahead of
// the caller. Seed and epoch are arguments: the order of the rows is a pure function of them, taken before
// sharding, so that all ranks agree on it without a word; random operations draw from (seed, epoch, sample,
// operation).
//
// Ownership: a Dataset shares immutable nodes, with the rows of its files in memory; an Iterator owns its
// thread and its pool of buffers, and keeps the nodes alive. Threads: see each type.
#pragma once

#include "muster/data/cifar.h"          // IWYU pragma: export
#include "muster/data/data_loader.h"    // IWYU pragma: export
#include "muster/data/dataset.h"        // IWYU pragma: export
#include "muster/data/image_folder.h"   // IWYU pragma: export
#include "muster/data/iterator.h"       // IWYU pragma: export
#include "muster/data/mnist.h"          // IWYU pragma: export
#include "muster/data/operation.h"      // IWYU pragma: export
#include "muster/data/operation_row.h"  // IWYU pragma: export
#include "muster/data/rows.h"           // IWYU pragma: export
#include "muster/data/sampler.h"        // IWYU pragma: export
#include "muster/data/synthetic.h"      // IWYU pragma: export
#include "muster/data/token_file.h"     // IWYU pragma: export
#include "muster/data/transforms.h"     // IWYU pragma: export
#include "muster/data/vision.h"         // IWYU pragma: export
