// Repository of a run's code: the commit, and what differs from it.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>

#include "muster/base/base.h"

namespace muster::launch {

// {"commit": ..., "branch": ..., "changed": [...], "untracked": [...]}, or {"problem": ...} where there is no
// repository or no git. What differs from the commit is written to `diff_file`, if anything does. It runs the
// program git, which reads alone; at most 20 s.
nlohmann::json examine_repository(const std::string& folder, const std::string& diff_file,
                                  const Clock& clock);

// The same in a process of its own, written to `<run folder>/repository.json` and changes.diff: nothing waits
// for it. -1: there is none.
pid_t begin_repository_record(const std::string& folder, const std::string& run_folder, const Clock& clock);

}  // namespace muster::launch
