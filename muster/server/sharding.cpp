#include "muster/server/sharding.h"

#include <algorithm>

namespace muster::server {

RowRange range_of(std::uint64_t rows, Share share) {
  const std::uint64_t least = rows / share.servers, longer = rows % share.servers;
  const std::uint64_t begin = share.server * least + std::min<std::uint64_t>(share.server, longer);
  return {begin, begin + least + (share.server < longer ? 1 : 0)};
}

// The finalizer of SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
std::uint64_t mixed(std::uint64_t id) {
  id = (id ^ (id >> 30)) * 0xBF58476D1CE4E5B9;
  id = (id ^ (id >> 27)) * 0x94D049BB133111EB;
  return id ^ (id >> 31);
}

Owners::Owners(const TableSpec& spec, std::uint32_t servers)
    : sharding_(spec.sharding),
      servers_(servers),
      home_(spec.home % servers),
      rows_(spec.rows),
      least_(spec.rows / servers),
      longer_(spec.rows % servers) {}

std::uint32_t Owners::of(std::uint64_t id) const {
  if (servers_ == 1) return 0;
  if (sharding_ == Sharding::whole) return home_;
  if (sharding_ == Sharding::hash)  // the upper bits: the index of a server's rows takes the lower ones
    return static_cast<std::uint32_t>(((mixed(id) >> 32) * servers_) >> 32);
  const std::uint64_t in_longer = longer_ * (least_ + 1);
  if (id < in_longer) return static_cast<std::uint32_t>(id / (least_ + 1));
  return static_cast<std::uint32_t>(longer_ + (id - in_longer) / least_);
}

RowRange Owners::range(std::uint32_t server) const {
  if (sharding_ == Sharding::whole) return server == home_ ? RowRange{0, rows_} : RowRange{};
  return range_of(rows_, {.server = server, .servers = servers_});
}

}  // namespace muster::server
