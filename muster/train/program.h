// Facts about the program in this process that should be the same in every process of a job.
#pragma once

#include <string_view>

#include "muster/cluster/cluster.h"

namespace muster::train {

// A language above says before init() what it runs, and its own name and version. An empty text: unknown.
void note_script(std::string_view text, cluster::Trait language);

// The hash of that script; of the executable where there is none.
cluster::Traits program_traits();

}  // namespace muster::train
