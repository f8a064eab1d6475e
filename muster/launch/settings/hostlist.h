// Lists as Slurm writes them: names of nodes, and tasks of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::launch {

// "n[1-3,07-09]-ib,x" is n1-ib, n2-ib, n3-ib, n07-ib, n08-ib, n09-ib, x. At most hosts_max names.
Result<std::vector<std::string>> parse_hostlist(std::string_view text);

// "4(x2),3" is 4, 4, 3.
Result<std::vector<std::int64_t>> parse_task_counts(std::string_view text);

}  // namespace muster::launch
