// The door of `checkpoint`: named tensors as a file, written so that a crash leaves the old file or the new
// one, never half of one.
//
// The bytes are those of MindSpore's .ckpt files (docs/formats/checkpoint.md), so that either reads the
// other's. Ownership: everything is a value. Threads: any, one at a time for one path.
#pragma once

#include "muster/checkpoint/format.h"  // IWYU pragma: export
#include "muster/checkpoint/store.h"   // IWYU pragma: export
