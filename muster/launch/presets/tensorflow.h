// The preset of scripts that use TensorFlow's parameter servers: on each of several hosts one worker and one
// parameter server, told by arguments and TF_CONFIG where all of them listen; on one host alone one process.
#pragma once

#include "muster/launch/presets/preset.h"

namespace muster::launch {

extern const Preset tensorflow_preset;

}  // namespace muster::launch
