#include "muster/collective/link_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "muster/collective/ucx_library.h"

namespace muster::collective {
namespace {

// Where the system lists RDMA devices: without one, UCX need not be asked.
constexpr const char* rdma_folder = "/sys/class/infiniband";

bool system_has_rdma() {
  std::error_code failed;
  std::filesystem::directory_iterator devices(rdma_folder, failed);
  return !failed && devices != std::filesystem::directory_iterator();
}

Result<LinkOffer> offer_where_rdma(const net::Security* security) {
  if (security != nullptr || !system_has_rdma() || !ucx_library()) return LinkOffer::socket_only;
  const auto devices = (*ucx_library())->devices();
  const bool has_rdma = devices && std::ranges::any_of(*devices, is_rdma);
  return has_rdma ? LinkOffer::ucx_where_both_can : LinkOffer::socket_only;
}

}  // namespace

Result<LinkOffer> link_offer(Transport transport, const net::Security* security) {
  if (transport == Transport::tcp) return LinkOffer::socket_only;
  if (transport == Transport::automatic) return offer_where_rdma(security);
  if (security != nullptr)
    return fail(
        Code::refused,
        "MUSTER_TRANSPORT=ucx would send plain bytes, and this job encrypts what its processes say to each "
        "other: use MUSTER_TRANSPORT=tcp, or no token and no certificates in a network that you trust");
  if (const auto& library = ucx_library(); !library)
    return fail(library.error().code, fmt::format("MUSTER_TRANSPORT=ucx: {}", library.error().message));
  return LinkOffer::ucx_only;
}

Result<LinkKind> link_between(LinkOffer calling, LinkOffer listening, std::uint32_t caller,
                              std::uint32_t listener) {
  const bool caller_has_it = calling != LinkOffer::socket_only;
  const bool listener_has_it = listening != LinkOffer::socket_only;
  if (caller_has_it && listener_has_it) return LinkKind::ucx;
  if (calling != LinkOffer::ucx_only && listening != LinkOffer::ucx_only) return LinkKind::socket;
  return fail(
      Code::refused,
      fmt::format("rank {} demands UCX between hosts (MUSTER_TRANSPORT=ucx), and rank {} does not have it: "
                  "set MUSTER_TRANSPORT alike for all processes",
                  caller_has_it ? caller : listener, caller_has_it ? listener : caller));
}

}  // namespace muster::collective
