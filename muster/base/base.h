// Public header of `base`: what every module builds on. Errors, checks, log lines, dtypes and shapes, hashes,
// counter-based random numbers, ranges of arguments, misspelt names, the interface of a group of processes
// (Communicator), and the outside world as interfaces (Clock, Files, Environment) with a real and a simulated
// counterpart each.
//
// Ownership: plain values, except the interfaces, which are borrowed by reference and must outlive their
// users. Threads: values are not shared; log lines and the real counterparts may be used from any thread.
#pragma once

#include "muster/base/check.h"          // IWYU pragma: export
#include "muster/base/clock.h"          // IWYU pragma: export
#include "muster/base/communicator.h"   // IWYU pragma: export
#include "muster/base/dtype.h"          // IWYU pragma: export
#include "muster/base/environment.h"    // IWYU pragma: export
#include "muster/base/files.h"          // IWYU pragma: export
#include "muster/base/hash.h"           // IWYU pragma: export
#include "muster/base/log.h"            // IWYU pragma: export
#include "muster/base/number_text.h"    // IWYU pragma: export
#include "muster/base/printable.h"      // IWYU pragma: export
#include "muster/base/random.h"         // IWYU pragma: export
#include "muster/base/range.h"          // IWYU pragma: export
#include "muster/base/result.h"         // IWYU pragma: export
#include "muster/base/shape.h"          // IWYU pragma: export
#include "muster/base/spelling.h"       // IWYU pragma: export
#include "muster/base/while_waiting.h"  // IWYU pragma: export
