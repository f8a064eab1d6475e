// The presets, each defined in the file of its name.
#pragma once

#include <cstdint>
#include <string_view>

#include "muster/launch/presets/preset.h"

namespace muster::launch {

// Scripts that form a cluster by MS_* variables: those written for Muster, and those written for MindSpore,
// whichever of the two runs them.
extern const Preset muster_preset;
extern const Preset mindspore_preset;

// Scripts for Ascend cards: one process for each card of this server, told by variables which card of which
// rank table it has.
extern const Preset ascend_preset;

// Scripts that use torch.distributed. In the style "init_method" one process runs on each host and is told by
// arguments where the others meet; in the style "env" one process runs on each slot and is told by variables,
// as torchrun does.
extern const Preset pytorch_preset;

// Scripts that use TensorFlow's parameter servers: on each of several hosts one worker and one parameter
// server, told by arguments and TF_CONFIG where all of them listen; on one host alone one process.
extern const Preset tensorflow_preset;

// Scripts that mpirun starts: MPI, Horovod, MindSpore on GPUs. One mpirun on the first host; the others run
// an sshd of their own, for it alone, and wait until it has ended.
extern const Preset mpi_preset;

inline constexpr std::uint16_t sshd_port_default = 36666;

// Whether run_mpi.sh would hand this variable on to the processes of all hosts: its line, "NAME=value", has
// MA_, S3_, PATH, VC_WORKER_, SCC or CRED at its beginning or SHARED_ anywhere, and does not end in "=".
bool travels(std::string_view name, std::string_view value);

}  // namespace muster::launch
