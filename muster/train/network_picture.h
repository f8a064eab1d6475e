// Private to train: picture of the network that a job trains, in the folder of its run, for the page.
#pragma once

#include "muster/base/base.h"

namespace muster::train {

// From now on this process, rank 0, keeps how its largest plan is divided over workers: network.svg where
// something is placed or lies on a mesh, and network.txt in words, or why there is no picture. Where the job
// has no run folder (MUSTER_RUN_FOLDER) nothing is kept. Main thread.
void keep_network_picture(const Environment& environment);

}  // namespace muster::train
