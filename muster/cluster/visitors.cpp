#include "muster/cluster/visitors.h"

#include "muster/cluster/wire.h"

namespace muster::cluster {
namespace {

constexpr std::size_t echo_cost_bytes = 256;  // of an empty one

}  // namespace

bool Visitors::may_echo(PeerId id, std::size_t size_bytes) {
  std::size_t& echoed = echoed_bytes_[id];
  echoed += size_bytes + echo_cost_bytes;
  return echoed <= echo_budget_bytes;
}

bool Visitors::meet(PeerId id, message::Doctor doctor) {
  if (doctors_.size() >= doctors_max && !doctors_.contains(id)) return false;
  doctors_[id] = std::move(doctor);
  return true;
}

bool Visitors::left(PeerId id) {
  echoed_bytes_.erase(id);
  return doctors_.erase(id) > 0;
}

}  // namespace muster::cluster
