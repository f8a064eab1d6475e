// The presets of scripts that form a cluster by MS_* variables: those written for Muster, and those written
// for MindSpore, whichever of the two runs them.
#pragma once

#include "muster/launch/presets/preset.h"

namespace muster::launch {

extern const Preset muster_preset;
extern const Preset mindspore_preset;

}  // namespace muster::launch
