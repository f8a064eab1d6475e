// Programs of other people that a job needs on this host.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/launch/presets/preset.h"

namespace muster::launch {

// Where each of them is: in the folders of PATH, or where Debian keeps those of administrators. The error
// names the first that is missing, and what to install.
Result<std::map<std::string, std::string>> find_programs(const std::vector<ProgramNeeded>& needed,
                                                         const Environment& environment);

// The name of the user who runs this process. ssh does not work for a user without one.
Result<std::string> user_name();

// Makes a key pair for ssh in the folder, with the program ssh-keygen, and returns its public half. The
// private half is host_key_name there; no other user may look into the folder.
Result<std::string> make_host_key(const std::string& folder, const std::string& ssh_keygen,
                                  const Clock& clock);

// What an sshd of root's asks for, and what only the system's own service makes otherwise.
Result<> make_sshd_folder();

}  // namespace muster::launch
