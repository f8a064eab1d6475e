#include "muster/collective/link.h"

#include "muster/collective/socket_link.h"
#include "muster/collective/ucx_link.h"

namespace muster::collective {

std::unique_ptr<Link> make_link(net::Socket connection, LinkKind kind) {
  if (kind == LinkKind::ucx) return std::make_unique<UcxLink>(std::move(connection));
  return std::make_unique<SocketLink>(std::move(connection));
}

}  // namespace muster::collective
