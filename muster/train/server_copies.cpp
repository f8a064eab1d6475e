#include "muster/train/server_copies.h"

#include <algorithm>

#include "muster/server/server.h"

namespace muster::train {

std::vector<std::pair<std::uint32_t, std::uint32_t>> copies_on_one_host(const cluster::Roster& roster,
                                                                        std::uint32_t copies) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  const auto host = [&](std::uint32_t server) { return cluster::host_of(roster.servers[server]); };
  const auto servers = static_cast<std::uint32_t>(roster.servers.size());
  const bool is_spread = std::ranges::any_of(
      roster.servers, [&](const cluster::Member& each) { return cluster::host_of(each) != host(0); });
  if (copies < 2 || !is_spread) return found;
  const server::Holders holders{.servers = servers, .copies = copies};
  for (std::uint32_t share = 0; share < servers; ++share) {
    const std::uint32_t other = holders.server(holders.other(share));
    if (host(share) == host(other)) found.emplace_back(share, other);
  }
  return found;
}

}  // namespace muster::train
