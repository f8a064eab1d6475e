// Choice of the links between hosts: what a rank offers, and what two ranks make of their offers.
#pragma once

#include "muster/base/base.h"
#include "muster/collective/collective.h"
#include "muster/collective/link.h"

namespace muster::collective {

// In a hello: what a rank can do without UCX and with it. What it offers is the same as long as its group
// lives.
enum class LinkOffer : std::uint32_t { socket_only, ucx_where_both_can, ucx_only };

// Of a rank of this process. It fails where UCX is demanded and is not here, or security is, which UCX does
// not give. Loads UCX's plugin only where it is demanded, or this host has RDMA devices.
Result<LinkOffer> link_offer(Transport transport, const net::Security* security);

// The link between the two. It fails where only one of them has UCX and that one demands it; `caller` and
// `listener` are how the error calls them.
Result<LinkKind> link_between(LinkOffer calling, LinkOffer listening, std::uint32_t caller,
                              std::uint32_t listener);

}  // namespace muster::collective
