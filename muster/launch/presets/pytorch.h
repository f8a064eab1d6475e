// The preset of scripts that use torch.distributed. In the style "init_method" one process runs on each host
// and is told by arguments where the others meet; in the style "env" one process runs on each slot and is
// told by variables, as torchrun does.
#pragma once

#include "muster/launch/presets/preset.h"

namespace muster::launch {

extern const Preset pytorch_preset;

}  // namespace muster::launch
