// Free ports of this host, kept from others until the job has ended.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/launch/presets/preset.h"
#include "muster/net/net.h"

namespace muster::launch {

struct ReservedPorts {
  std::vector<net::PortReservation> reservations = {};
  std::vector<std::uint16_t> numbers() const;
};

// On loopback, or on all addresses of this host where `reach` says that others connect. From a range at
// random, as another process may look for one there too. Errors name the range.
Result<ReservedPorts> reserve_ports(const PortsWanted& wanted, Reach reach);

}  // namespace muster::launch
