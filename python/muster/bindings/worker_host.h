// Python in the processes that make rows.
#pragma once

#include <optional>

#include "muster/data/data.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// The processes that `num_parallel_workers` and `python_multiprocessing` ask for: none unless it is true.
// `max_rowsize` is None or -1, MB, or a list of MB for what goes in and what comes out.
data::ProcessOptions processes_from(std::optional<int> num_parallel_workers, bool python_multiprocessing,
                                    nb::handle max_rowsize);

}  // namespace muster::python
