// Limit of open descriptors (files, sockets) of this process, and a reserve for the moment when all others
// are taken.
//
// A process that listens raises the soft limit to the hard one. Children of fork() get the old one back: what
// a launcher starts may use select(), which knows no descriptor above 1,023. Threads: any.
#pragma once

#include <cstddef>

namespace muster::net {

// Lets this process open as many descriptors as the system allows it, a million at most. Returns how many.
std::size_t raise_descriptor_limit();

// How many more it may open now.
std::size_t free_descriptors();

// Where all descriptors are taken, be it by the user's own files, a connection that belongs here gets one of
// these. `fill` opens them as far as that goes; `give_up_reserved_descriptor` closes one, if one is left.
void fill_descriptor_reserve();
bool give_up_reserved_descriptor();

// A stream socket, close-on-exec and non-blocking, or -1 and errno. Takes from the reserve.
int open_socket(int family);

// What unauthorized peers are told then, and logs.
inline constexpr const char* no_descriptor_is_free =
    "no descriptor is free: this process has too many files open (ulimit -n)";

// Whether a call failed since no descriptor, or no memory for one, is free.
bool lacks_descriptors(int error);

}  // namespace muster::net
