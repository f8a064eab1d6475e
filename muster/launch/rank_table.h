// Rank tables of versions 1.0 and 1.2: the JSON file that says which Ascend cards of which servers make up a
// job, and the rank of each. docs/formats/rank-table.md has every field. Values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::launch {

inline constexpr std::string_view rank_table_version = "1.0";
inline constexpr std::string_view rank_table_version_of_super_pods = "1.2";

struct RankTable {
  struct Device {
    std::int64_t device_id = 0;  // of the card in its server
    std::string device_ip = {};  // of the card's own network port; may be empty on a single server
    std::int64_t rank_id = 0;
  };
  struct Server {
    std::string server_id;
    std::vector<Device> devices = {};  // as the table lists them
  };
  std::vector<Server> servers;
  std::string version = std::string(rank_table_version);

  std::int64_t device_count() const;
  // The devices of server `index` in the order of their ranks: a device's place is its logical number there.
  std::vector<Device> ranked(std::size_t index) const;
};

inline constexpr std::size_t rank_table_bytes_max = 4 << 20;
inline constexpr std::size_t rank_table_devices_max = 16384;

// What the text says, or the first thing in it that is wrong. `name` (of the file) begins each error.
Result<RankTable> parse_rank_table(std::string_view text, std::string_view name);

// A table that parse_rank_table reads back, with a line's end.
std::string rank_table_text(const RankTable& table);

// The cards of one server, in the order in which they get their ranks.
struct ServerCards {
  std::string server_id;
  std::vector<std::int64_t> device_ids = {};
  std::vector<std::string> device_ips = {};  // none, or one for each card
};
// Ranks count on from server to server.
Result<RankTable> make_rank_table(std::span<const ServerCards> servers);

// Tables of single servers as one: their servers one after the other, with new ranks.
Result<RankTable> merge_rank_tables(std::span<const RankTable> tables);

// Cards and the addresses of their network ports, as a server's /etc/hccn.conf lists them:
// "address_0=192.168.1.8". Other lines are skipped.
Result<std::map<std::int64_t, std::string>> parse_hccn_conf(std::string_view text, std::string_view name);

// "0-3,6" as the numbers 0, 1, 2, 3, 6.
Result<std::vector<std::int64_t>> parse_device_ids(std::string_view text);

}  // namespace muster::launch
