// muster checkpoint convert: checkpoints of one layout as those of another.
#pragma once

#include "commands.h"

namespace muster::app {

void add_convert(CLI::App& checkpoint, Invocation& invocation);

}  // namespace muster::app
