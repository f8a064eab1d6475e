// The preset of scripts that mpirun starts: MPI, Horovod, MindSpore on GPUs. One mpirun on the first host;
// the others run an sshd of their own, for it alone, and wait until it has ended.
#pragma once

#include "muster/launch/presets/preset.h"

namespace muster::launch {

extern const Preset mpi_preset;

inline constexpr std::uint16_t sshd_port_default = 36666;

// Whether run_mpi.sh would hand this variable on to the processes of all hosts: its line, "NAME=value", has
// MA_, S3_, PATH, VC_WORKER_, SCC or CRED at its beginning or SHARED_ anywhere, and does not end in "=".
bool travels(std::string_view name, std::string_view value);

}  // namespace muster::launch
