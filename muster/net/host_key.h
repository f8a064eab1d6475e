// Host key: equal for processes that can share memory. And the name that the machine gives itself.
#pragma once

#include <string>

#include "muster/base/base.h"

namespace muster::net {

// Equal for processes that run under one kernel and in one network namespace, so that they reach each other
// through abstract unix sockets: the kernel's boot id and the namespace's inode. MUSTER_HOST_KEY overrides
// it; different keys on one host force TCP.
Result<std::string> host_key(const Environment& environment);

// gethostname(); empty when it has none.
std::string host_name();

}  // namespace muster::net
