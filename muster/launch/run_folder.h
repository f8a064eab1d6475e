// The folder of a launcher's temporary files: hostfiles, keys, sockets. Nobody else can look into it, and
// nothing of it is left when the launcher has ended, however it ends: both twins of `keep` know its name.
#pragma once

#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/launch/launch_spec.h"

namespace muster::launch {

// A name that nobody has, below TMPDIR or /tmp. Makes nothing.
std::string new_run_folder(const Environment& environment);
// For this user alone; fails when there is one.
Result<> make_run_folder(const std::string& folder);
// Each is new, readable for this user alone, and lies in the folder.
Result<> make_files(const std::string& folder, const std::vector<FileSpec>& files);
// With all that is in it; nothing when there is none.
void remove_run_folder(const std::string& folder);

}  // namespace muster::launch
