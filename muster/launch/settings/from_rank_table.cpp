#include "muster/launch/settings/sources.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/launch/settings/wrong.h"

namespace muster::launch {
namespace {

std::string servers_text(const RankTable& table) {
  return fmt::format("{} server{}", table.servers.size(), table.servers.size() == 1 ? "" : "s");
}

Result<> check_host_count(const PartialSettings& said, const RankTable& table) {
  const std::string& name = said.rank_table->value;
  if (said.hosts && said.hosts->value.size() != table.servers.size())
    return wrong(fmt::format("{} names {} hosts, and {} has {}", said.hosts->origin, said.hosts->value.size(),
                             name, servers_text(table)));
  if (said.host_count && said.host_count->value != static_cast<std::int64_t>(table.servers.size()))
    return wrong(fmt::format("{} {}, and {} has {}", said.host_count->origin, said.host_count->value, name,
                             servers_text(table)));
  const bool is_reached = said.reach && said.reach->value == Reach::ssh;
  if (table.servers.size() > 1 && !said.self && !is_reached)
    return wrong(fmt::format("{} has {}: say which of them this is, from --node-rank 0 to {}", name,
                             servers_text(table), table.servers.size() - 1));
  return {};
}

}  // namespace

Result<std::vector<std::size_t>> servers_of(const std::vector<HostSlots>& hosts, const RankTable& table,
                                            std::string_view table_name) {
  std::vector<std::size_t> by_place, by_name;
  std::string_view unlisted;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    by_place.push_back(i);
    const auto found = std::find_if(table.servers.begin(), table.servers.end(), [&](const auto& server) {
      return server.server_id == address_of_host(hosts[i].name);
    });
    if (found == table.servers.end())
      unlisted = address_of_host(hosts[i].name);
    else
      by_name.push_back(static_cast<std::size_t>(found - table.servers.begin()));
  }
  if (by_name.size() == hosts.size()) return by_name;
  if (by_name.empty()) return by_place;
  return wrong(
      fmt::format("{} has no server_id '{}', but those of other hosts: give all servers the names of "
                  "their hosts, or none",
                  table_name, unlisted));
}

Result<PartialSettings> with_rank_table(PartialSettings said, const RankTable& table) {
  const std::string& name = said.rank_table->value;
  MUSTER_TRY_VOID(check_host_count(said, table));
  Setting<std::vector<HostSlots>> hosts{std::vector<HostSlots>(table.servers.size()), name};
  if (said.hosts) hosts = *said.hosts;
  MUSTER_TRY(const auto servers, servers_of(hosts.value, table, name));
  // What a platform counts is no request for processes.
  const bool is_asked = said.slots && said.slots->origin != "MA_NUM_GPUS";
  for (std::size_t i = 0; i < hosts.value.size(); ++i) {
    HostSlots& host = hosts.value[i];
    const auto& server = table.servers[servers[i]];
    const auto cards = static_cast<std::int64_t>(server.devices.size());
    if (host.slots == 0 && is_asked) host.slots = said.slots->value;
    if (host.slots != 0 && host.slots != cards)
      return wrong(
          fmt::format("{} on server '{}': {} has {} cards there, and each gets one process: leave it "
                      "out",
                      is_asked ? fmt::format("{} {}", said.slots->origin, said.slots->value)
                               : fmt::format("{}: {} slots", hosts.origin, host.slots),
                      server.server_id, name, cards));
    host.slots = cards;
  }
  if (!is_asked) said.slots.reset();
  said.hosts = std::move(hosts);
  return said;
}

}  // namespace muster::launch
