// Files of passwords and tokens, handed on to processes that are started.
#pragma once

#include <string>

#include "muster/base/base.h"

namespace muster::launch {

// What a process that this one starts can read as often as it likes, under the name that is returned: a
// file's absolute path; for a pipe or a descriptor ("fd:N"), which gives its bytes once, "fd:M" of a copy in
// memory that children inherit. `what` it is stands in errors.
Result<std::string> handed_on(const std::string& name, std::string_view what);

}  // namespace muster::launch
