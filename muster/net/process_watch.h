// A descriptor that becomes readable when a process ends (pidfd), and the process that holds a port.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/base/base.h"
#include "muster/net/process_descriptor.h"

namespace muster::net {

// Code::not_found when there is no such process.
Result<ProcessDescriptor> open_process(std::int32_t pid);

// How a process ended, as waitpid() tells its parent; every process that watched it may ask. Nothing before
// its parent has waited for it, or where the kernel cannot tell (before Linux 6.15).
std::optional<int> wait_status(const ProcessDescriptor& process);

// Equal for processes to which a pid means the same process: the kernel's boot id and the inode of the pid
// namespace. Empty when /proc cannot tell: then nothing is comparable.
std::string process_space();

// "process 4711 (nginx)" that listens on the TCP port of this network namespace, or "another process" when
// /proc does not tell.
std::string port_owner(std::uint16_t port);

}  // namespace muster::net
