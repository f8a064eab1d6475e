// Second public header of `train`, for the Python bindings (tools/check_layout.py): parameters on the job's
// parameter servers (docs/guide/parameter-servers.md). Main thread.
#pragma once

#include <cstdint>
#include <optional>

#include "muster/base/base.h"
#include "muster/graph/graph.h"

namespace muster::train {

struct ParameterServers {
  bool enabled = false;
  // How many steps a worker may be ahead of what the servers have applied; nothing: as many as it likes.
  std::optional<std::uint64_t> staleness = 0;
  friend bool operator==(const ParameterServers&, const ParameterServers&) = default;
};

// Before init(); afterwards an error, unless nothing changes.
Result<> set_parameter_servers(const ParameterServers& chosen);
const ParameterServers& parameter_servers();

// From here on the servers update the parameter, by the rule of its optimizer. In a process that trains alone
// it stays there.
Result<> put_on_servers(const graph::ParameterPtr& parameter);

// All rows of a table (rows, width) that is there: lookups, which all workers make where they recover.
Result<Tensor> rows_on_servers(const graph::ParameterPtr& table);
// An error for a table of which the servers have heard: nothing sets its rows any more.
Result<> check_settable(const graph::Parameter& parameter);

}  // namespace muster::train
