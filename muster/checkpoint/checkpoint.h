// Public header of `checkpoint`: named tensors as files, and recovery points, written so that a crash leaves
// the old or the new, never half of one.
//
// Files that people save and load have the bytes of MindSpore's .ckpt (docs/formats/checkpoint.md), so that
// either reads the other's. What a job needs to go on after a death is a recovery point
// (docs/formats/recovery-point.md): tensors as safetensors, sections of any bytes, a manifest with their
// hashes. Ownership: everything is a value; a RunStore owns no more than its folder on the disk. Threads:
// any, one at a time for one path; RunStore and BackgroundSaver say what they allow.
#pragma once

#include "muster/checkpoint/background_saver.h"  // IWYU pragma: export
#include "muster/checkpoint/compare.h"           // IWYU pragma: export
#include "muster/checkpoint/format.h"            // IWYU pragma: export
#include "muster/checkpoint/inspect.h"           // IWYU pragma: export
#include "muster/checkpoint/journal.h"           // IWYU pragma: export
#include "muster/checkpoint/point.h"             // IWYU pragma: export
#include "muster/checkpoint/removal.h"           // IWYU pragma: export
#include "muster/checkpoint/resumption.h"        // IWYU pragma: export
#include "muster/checkpoint/run_folders.h"       // IWYU pragma: export
#include "muster/checkpoint/run_store.h"         // IWYU pragma: export
#include "muster/checkpoint/safetensors.h"       // IWYU pragma: export
#include "muster/checkpoint/serialized_point.h"  // IWYU pragma: export
#include "muster/checkpoint/state_file.h"        // IWYU pragma: export
#include "muster/checkpoint/step_mark.h"         // IWYU pragma: export
#include "muster/checkpoint/storage.h"           // IWYU pragma: export
#include "muster/checkpoint/store.h"             // IWYU pragma: export
#include "muster/checkpoint/write_throttle.h"    // IWYU pragma: export
