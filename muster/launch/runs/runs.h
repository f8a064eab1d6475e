// Runs of a folder: what became of each job that `muster run` has started there, and how two of them differ,
// and why one did not end well (docs/formats/run-folder.md). Public for apps.
#pragma once

#include <string>

#include "muster/base/base.h"

namespace muster::launch {

// A line for each run in the folder, the newest last; the folder may be that of one run. Fails where there is
// none.
Result<std::string> runs_text(const std::string& folder);
// {"runs": [{"name": ..., "script": ..., "state": ..., "steps": ..., "loss": ...}]}.
Result<std::string> runs_json(const std::string& folder);

// How both went, and what differs of settings, variables, versions, code and numbers. Each is a folder, or
// the name of one in muster-logs.
Result<std::string> comparison_text(const std::string& a, const std::string& b);
// {"runs": [...], "differences": {"settings": [{"name": ..., "a": ..., "b": ...}], ...}}.
Result<std::string> comparison_json(const std::string& a, const std::string& b);

// Which rank of a run diverged first, in words, from the flight recorders in its folder: of a job that has
// ended, or that runs.
Result<std::string> autopsy_text(const std::string& run);

}  // namespace muster::launch
