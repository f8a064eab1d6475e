// Public header of `telemetry`: files and texts that other people's tools read. It knows their formats and
// nothing of trainings; who calls it gathers the numbers.
//
// Threads: an object serves one thread at a time.
#pragma once

#include "muster/telemetry/append_file.h"      // IWYU pragma: export
#include "muster/telemetry/event_file.h"       // IWYU pragma: export
#include "muster/telemetry/flight_recorder.h"  // IWYU pragma: export
#include "muster/telemetry/summary.h"          // IWYU pragma: export
