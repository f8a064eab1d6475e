#include "muster/cluster/process_key.h"

namespace muster::cluster {

ProcessSecret new_secret() { return {entropy() | 1, entropy()}; }

ProcessKey key_of(const ProcessSecret& secret, const Member& claimed) {
  net::ByteWriter out;
  for (const std::uint64_t part : secret) out.number(part);
  out.number(static_cast<std::uint8_t>(claimed.role));
  out.number(claimed.incarnation);
  out.text(claimed.node_id);
  return net::sha256(out.bytes());
}

}  // namespace muster::cluster
