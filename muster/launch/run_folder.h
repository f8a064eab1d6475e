// The folder of a launcher's temporary files: hostfiles, keys, sockets. No other user can look into it, and
// nothing of it is left when the launcher has ended, however it ends: both watchdogs of `keep` know its name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/launch/launch_spec.h"
#include "muster/net/net.h"

namespace muster::launch {

// A name that is not taken, below TMPDIR or /tmp. Makes nothing.
std::string new_run_folder(const Environment& environment);
// What such a name looks like, the same each time, for who only describes a job.
std::string run_folder_like(const Environment& environment, std::uint64_t number = 0);
// For this user alone; fails when there is one.
Result<> make_run_folder(const std::string& folder);
// Each is new, readable for this user alone, and lies in the folder. What is returned holds those that are
// kept in memory, which are there as long as it is.
Result<std::vector<net::Descriptor>> make_files(const std::string& folder,
                                                const std::vector<FileSpec>& files);
// With all that is in it; nothing when there is none.
void remove_run_folder(const std::string& folder);

}  // namespace muster::launch
