// The preset of scripts for Ascend cards: one process for each card of this server, told by variables which
// card of which rank table it has.
#pragma once

#include "muster/launch/presets/preset.h"

namespace muster::launch {

extern const Preset ascend_preset;

}  // namespace muster::launch
