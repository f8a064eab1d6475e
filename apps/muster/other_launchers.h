// Options that msrun, torchrun, mpirun, horovodrun, srun and others have, and what says the same to
// `muster run`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::app {

// "write -n ..." for an option of another launcher ("--nproc-per-node", "--nproc_per_node"), else nothing.
std::optional<std::string> said_here(std::string_view option);

}  // namespace muster::app
