// Other users of a host, to whom an open port on loopback is open too.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::cluster {

struct OwnedProcess {
  pid_t pid = 0;
  pid_t parent = 0;
  uid_t user = 0;
};

// The user of one of the processes, if this is a person and another one than the user of process `self`:
// people have numbers from 1000 on, and `name_of_person` knows those who may log in. The user of an ancestor
// of `self` is the same person, who became another user with sudo or su.
std::optional<std::string> other_person(
    const std::vector<OwnedProcess>& processes, pid_t self,
    const std::function<std::optional<std::string>(uid_t)>& name_of_person);

// The same of this host as it is now, as far as this process can see.
std::optional<std::string> other_person_here();

}  // namespace muster::cluster
