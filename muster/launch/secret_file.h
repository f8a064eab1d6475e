// Passwords and tokens, handed on to processes that are started: as files, and in memory alone.
#pragma once

#include <string>
#include <string_view>

#include "muster/base/base.h"
#include "muster/net/net.h"

namespace muster::launch {

// What a process that this one starts can read as often as it likes, under the name that is returned: a
// file's absolute path; for a pipe or a descriptor ("fd:N"), which gives its bytes once, "fd:M" of a copy in
// memory that children inherit. `what` it is stands in errors.
Result<std::string> handed_on(const std::string& name, std::string_view what);

// A file that is nowhere but in memory, for this user alone. Programs that are started do not inherit it.
Result<net::Descriptor> memory_file(std::string_view contents);

// A token that cannot be guessed.
std::string new_token();

}  // namespace muster::launch
