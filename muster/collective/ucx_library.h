// The plugin for UCX, muster_ucx.so: in lib/muster of Muster's build or installation, where it was built.
#pragma once

#include "muster/base/base.h"
#include "muster/collective/ucx_port.h"

namespace muster::collective {

// Loads it on the first call. Where it cannot be loaded the error says why, and what to do.
const Result<const UcxLibrary*>& ucx_library();

// Whether a device of UCX ("rc_mlx5/mlx5_0:1") is one of an RDMA network: none of shared memory, of this
// process alone, or of TCP.
bool is_rdma(std::string_view device);

}  // namespace muster::collective
