// This host and its processes: what tells them apart, their ends, their ports, and how many descriptors one
// may open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "muster/base/base.h"
#include "muster/net/descriptor.h"

namespace muster::net {

// Equal for processes that run under one kernel and in one network namespace, so that they reach each other
// through abstract unix sockets: the kernel's boot id and the namespace's inode. MUSTER_HOST_KEY overrides
// it; different keys on one host force TCP.
Result<std::string> host_key(const Environment& environment);

// gethostname(); empty when it has none.
std::string host_name();

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

// While it lives, the system gives the port to no process that asks for "any free port". A program that names
// the port and sets SO_REUSEADDR, as servers do, can listen on it.
class PortReservation {
 public:
  // This port of a numeric address, or, if it is 0, a free one.
  static Result<PortReservation> open(const std::string& ip, std::uint16_t port = 0);
  std::uint16_t port() const { return port_; }

 private:
  PortReservation(Descriptor socket, std::uint16_t port) : socket_(std::move(socket)), port_(port) {}
  Descriptor socket_;
  std::uint16_t port_;
};

// Limit of open descriptors (files, sockets) of this process, and a reserve for the moment when all others
// are taken. A process that listens raises the soft limit to the hard one. Children of fork() get the old one
// back: what a launcher starts may use select(), which knows no descriptor above 1,023. Threads: any.

// Lets this process open as many descriptors as the system allows it, a million at most. Returns how many.
std::size_t raise_descriptor_limit();

// How many more it may open now.
std::size_t free_descriptors();

// Where all descriptors are taken, be it by the user's own files, a connection that belongs here gets one of
// these. `fill` opens them as far as that goes; `give_up_reserved_descriptor` closes one, if one is left.
void fill_descriptor_reserve();
bool give_up_reserved_descriptor();

// What unauthorized peers are told then, and logs.
inline constexpr const char* no_descriptor_is_free =
    "no descriptor is free: this process has too many files open (ulimit -n)";

}  // namespace muster::net
