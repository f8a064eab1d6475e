// Hosts and slots from a rank table.
#pragma once

#include <string_view>
#include <vector>

#include "muster/launch/rank_table.h"
#include "muster/launch/settings/job_settings.h"

namespace muster::launch {

// Settings whose hosts have the slots that the table (in said.rank_table's file) gives them. Errors name both
// sides where `said` and the table differ.
Result<PartialSettings> with_rank_table(PartialSettings said, const RankTable& table);

// The server of each host: by its name where servers have the hosts' names, else in the table's order. As
// many hosts as the table has servers.
Result<std::vector<std::size_t>> servers_of(const std::vector<HostSlots>& hosts, const RankTable& table,
                                            std::string_view table_name);

}  // namespace muster::launch
