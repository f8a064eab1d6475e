// Observers of a scheduler: connections that ask for the status or measure the network, and take no part in
// the job. A pure value.
#pragma once

#include <cstddef>
#include <map>

#include "muster/cluster/messages.h"

namespace muster::cluster {

// What one connection may have echoed: measuring must not disturb the job.
inline constexpr std::size_t echo_budget_bytes = 4 << 20;

class Observers {
 public:
  // Whether this one may still measure with so many bytes.
  bool may_echo(PeerId id, std::size_t size_bytes);
  // False when there is no room for one more doctor, or this one is here already.
  bool meet(PeerId id, message::Doctor doctor);
  // Its connection is gone. Whether it was a doctor.
  bool left(PeerId id);

  const std::map<PeerId, message::Doctor>& doctors() const { return doctors_; }

 private:
  std::map<PeerId, std::size_t> echoed_bytes_;
  std::map<PeerId, message::Doctor> doctors_;
};

}  // namespace muster::cluster
