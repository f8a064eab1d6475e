#include "muster/cluster/observers.h"

#include "muster/cluster/wire.h"

namespace muster::cluster {
namespace {

constexpr std::size_t echo_cost_bytes = 256;  // of an empty one

}  // namespace

bool Observers::may_echo(PeerId id, std::size_t size_bytes) {
  std::size_t& echoed = echoed_bytes_[id];
  echoed += size_bytes + echo_cost_bytes;
  return echoed <= echo_budget_bytes;
}

bool Observers::meet(PeerId id, message::Doctor doctor) {
  return doctors_.size() < doctors_max && doctors_.try_emplace(id, std::move(doctor)).second;
}

bool Observers::left(PeerId id) {
  echoed_bytes_.erase(id);
  return doctors_.erase(id) > 0;
}

}  // namespace muster::cluster
