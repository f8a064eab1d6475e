#include "muster/launch/rank_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "muster/json/json.h"
#include "muster/net/net.h"

namespace muster::launch {
namespace {

using nlohmann::json;

constexpr std::int64_t device_id_max = 4095;
constexpr std::int64_t rank_id_max = 1'000'000;  // gaps below are found, and named, for the whole table
constexpr std::size_t shown_bytes_max = 64;

tl::unexpected<Error> wrong_table(std::string_view where, std::string_view what) {
  return fail(Code::invalid_argument, fmt::format("{}: {}", where, what));
}

std::string shown(std::string_view text) {
  return text.size() <= shown_bytes_max ? std::string(text)
                                        : fmt::format("{}...", text.substr(0, shown_bytes_max));
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

Result<json> parse_text(std::string_view text, std::string_view name) {
  MUSTER_TRY(json parsed, muster::json::parse(text, name, {.bytes = rank_table_bytes_max}));
  if (!parsed.is_object())
    return wrong_table(name, fmt::format("it is a JSON object, not {}", parsed.type_name()));
  return parsed;
}

// The fields of one object. `where` begins each error: "table.json: server_list[1].device[0]".
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const std::string& where() const { return where_; }

  Result<std::string> text(std::string_view field, std::string_view example) const {
    const auto found = object_.find(field);
    if (found == object_.end())
      return wrong_table(where_,
                         fmt::format("'{}' is missing, for example \"{}\": \"{}\"", field, field, example));
    if (found->is_number())
      return wrong_table(
          where_, fmt::format("'{0}' is {1} without quotes: in a rank table it is a text, \"{1}\"", field,
                              found->dump()));
    if (!found->is_string())
      return wrong_table(where_, fmt::format("'{}' is a text, not {}", field, found->type_name()));
    return found->get<std::string>();
  }

  Result<std::int64_t> number(std::string_view field, std::int64_t max) const {
    MUSTER_TRY(const std::string value, text(field, "0"));
    const auto number = whole_number(value);
    if (!number || *number > max)
      return wrong_table(
          where_, fmt::format("'{}' is '{}', and not a whole number from 0 to {}", field, shown(value), max));
    return *number;
  }

  // The list of objects named `field`, with something in it.
  Result<const json*> list(std::string_view field) const {
    const auto found = object_.find(field);
    if (found == object_.end()) return wrong_table(where_, fmt::format("the list '{}' is missing", field));
    if (!found->is_array())
      return wrong_table(where_, fmt::format("'{}' is a list, not {}", field, found->type_name()));
    if (found->empty()) return wrong_table(where_, fmt::format("the list '{}' is empty", field));
    for (std::size_t i = 0; i < found->size(); ++i)
      if (!(*found)[i].is_object())
        return wrong_table(where_,
                           fmt::format("{}[{}] is an object, not {}", field, i, (*found)[i].type_name()));
    return &*found;
  }

  bool has(std::string_view field) const { return object_.contains(field); }

 private:
  const json& object_;
  std::string where_;
};

// Its version. 1.2, of super pods, has the same servers and cards, and beside them what HCCL alone reads.
Result<std::string> check_head(const Fields& table) {
  if (table.has("group_list"))
    return wrong_table(
        table.where(),
        "it is of the older form with 'group_list': make one of version 1.0 with `muster ranktable`");
  MUSTER_TRY(const std::string version, table.text("version", "1.0"));
  if (version != rank_table_version && version != rank_table_version_of_super_pods)
    return wrong_table(table.where(),
                       fmt::format("'version' is '{}', and only {} and {} are known here", shown(version),
                                   rank_table_version, rank_table_version_of_super_pods));
  MUSTER_TRY(const std::string status, table.text("status", "completed"));
  if (status == "completed") return version;
  return wrong_table(table.where(),
                     fmt::format("'status' is '{}', and not 'completed': {}", shown(status),
                                 status == "initializing" ? "its writer has not finished it yet"
                                                          : "a table that can be used says so"));
}

Result<std::string> read_device_ip(const Fields& device, bool is_alone) {
  if (is_alone && !device.has("device_ip")) return std::string();
  MUSTER_TRY(const std::string text, device.text("device_ip", "192.168.1.8"));
  if (text.empty() && is_alone) return std::string();
  if (text.empty())
    return wrong_table(device.where(), "'device_ip' is empty: cards of several servers need one");
  const auto ip = net::parse_ip(text);
  if (!ip)
    return wrong_table(device.where(), fmt::format("'device_ip' is '{}', and no IP address", shown(text)));
  return *ip;
}

Result<RankTable::Device> read_device(const Fields& fields, bool is_alone) {
  RankTable::Device device;
  MUSTER_TRY(device.device_id, fields.number("device_id", device_id_max));
  MUSTER_TRY(device.device_ip, read_device_ip(fields, is_alone));
  MUSTER_TRY(device.rank_id, fields.number("rank_id", rank_id_max));
  return device;
}

Result<RankTable::Server> read_server(const Fields& fields, bool is_alone) {
  RankTable::Server server;
  MUSTER_TRY(server.server_id, fields.text("server_id", "10.0.0.1"));
  if (server.server_id.empty()) return wrong_table(fields.where(), "'server_id' is empty");
  MUSTER_TRY(const json* const devices, fields.list("device"));
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const Fields device((*devices)[i], fmt::format("{}.device[{}]", fields.where(), i));
    MUSTER_TRY(server.devices.emplace_back(), read_device(device, is_alone));
  }
  return server;
}

// Where a value was seen before, for errors that name both places.
template <class T>
class Seen {
 public:
  // The place of the same value before, or nothing: then `place` is kept.
  std::optional<std::string> before(const T& value, const std::string& place) {
    const auto [found, is_new] = places_.emplace(value, place);
    if (is_new) return std::nullopt;
    return found->second;
  }

 private:
  std::map<T, std::string> places_;
};

Result<> check_ranks(const RankTable& table, std::string_view name) {
  std::vector<bool> taken(static_cast<std::size_t>(table.device_count()));
  std::int64_t largest = 0;
  for (const auto& server : table.servers)
    for (const auto& device : server.devices) {
      largest = std::max(largest, device.rank_id);
      if (device.rank_id < table.device_count()) taken[static_cast<std::size_t>(device.rank_id)] = true;
    }
  const auto gap = std::find(taken.begin(), taken.end(), false);
  if (gap == taken.end()) return {};
  return wrong_table(name,
                     fmt::format("rank_id {} is missing and {} is there: {} devices have the ranks 0 to {}",
                                 gap - taken.begin(), largest, taken.size(), taken.size() - 1));
}

// What no single field shows: the same thing twice, ranks with gaps.
Result<> check_whole(const RankTable& table, std::string_view name) {
  Seen<std::string> ids;
  Seen<std::string> ips;
  Seen<std::int64_t> ranks;
  for (std::size_t i = 0; i < table.servers.size(); ++i) {
    const auto& server = table.servers[i];
    const std::string at = fmt::format("server_list[{}]", i);
    if (const auto before = ids.before(server.server_id, at))
      return wrong_table(
          name, fmt::format("{} and {} have the same server_id '{}'", *before, at, shown(server.server_id)));
    Seen<std::int64_t> cards;
    for (std::size_t k = 0; k < server.devices.size(); ++k) {
      const auto& device = server.devices[k];
      const std::string place = fmt::format("{}.device[{}]", at, k);
      const auto both = [&](const std::string& before, std::string_view what) {
        return wrong_table(name, fmt::format("{} and {} have the same {}", before, place, what));
      };
      if (const auto before = cards.before(device.device_id, place))
        return both(*before, fmt::format("device_id {}", device.device_id));
      if (const auto before = ranks.before(device.rank_id, place))
        return both(*before, fmt::format("rank_id {}", device.rank_id));
      if (device.device_ip.empty()) continue;
      if (const auto before = ips.before(device.device_ip, place))
        return both(*before, fmt::format("device_ip {}", device.device_ip));
    }
  }
  return check_ranks(table, name);
}

}  // namespace

std::int64_t RankTable::device_count() const {
  std::int64_t count = 0;
  for (const Server& server : servers) count += static_cast<std::int64_t>(server.devices.size());
  return count;
}

std::vector<RankTable::Device> RankTable::ranked(std::size_t index) const {
  std::vector<Device> devices = servers.at(index).devices;
  std::sort(devices.begin(), devices.end(),
            [](const Device& a, const Device& b) { return a.rank_id < b.rank_id; });
  return devices;
}

Result<RankTable> parse_rank_table(std::string_view text, std::string_view name) {
  MUSTER_TRY(const json parsed, parse_text(text, name));
  const Fields head(parsed, std::string(name));
  RankTable table;
  MUSTER_TRY(table.version, check_head(head));
  MUSTER_TRY(const json* const servers, head.list("server_list"));
  MUSTER_TRY(const std::int64_t count, head.number("server_count", rank_table_devices_max));
  if (count != static_cast<std::int64_t>(servers->size()))
    return wrong_table(name,
                       fmt::format("'server_count' is {} and 'server_list' has {}", count, servers->size()));
  std::size_t devices = 0;
  for (std::size_t i = 0; i < servers->size(); ++i) {
    const Fields server((*servers)[i], fmt::format("{}: server_list[{}]", name, i));
    MUSTER_TRY(table.servers.emplace_back(), read_server(server, servers->size() == 1));
    devices += table.servers.back().devices.size();
    if (devices > rank_table_devices_max)
      return wrong_table(
          name, fmt::format("it has more than the {} devices that a job may have", rank_table_devices_max));
  }
  MUSTER_TRY_VOID(check_whole(table, name));
  return table;
}

std::string rank_table_text(const RankTable& table) {
  using nlohmann::ordered_json;
  ordered_json servers = ordered_json::array();
  for (const auto& server : table.servers) {
    ordered_json devices = ordered_json::array();
    for (const auto& device : server.devices) {
      ordered_json row = {{"device_id", std::to_string(device.device_id)}};
      if (!device.device_ip.empty()) row["device_ip"] = device.device_ip;
      row["rank_id"] = std::to_string(device.rank_id);
      devices.push_back(std::move(row));
    }
    servers.push_back({{"server_id", server.server_id}, {"device", std::move(devices)}});
  }
  const ordered_json whole = {{"version", rank_table_version},
                              {"status", "completed"},
                              {"server_count", std::to_string(table.servers.size())},
                              {"server_list", std::move(servers)}};
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<RankTable> make_rank_table(std::span<const ServerCards> servers) {
  RankTable table;
  std::int64_t rank = 0;
  for (const ServerCards& cards : servers) {
    if (!cards.device_ips.empty() && cards.device_ips.size() != cards.device_ids.size())
      return wrong_table("server " + cards.server_id,
                         fmt::format("{} addresses for {} cards: each card has one", cards.device_ips.size(),
                                     cards.device_ids.size()));
    auto& server = table.servers.emplace_back(RankTable::Server{.server_id = cards.server_id});
    for (std::size_t i = 0; i < cards.device_ids.size(); ++i)
      server.devices.push_back({.device_id = cards.device_ids[i],
                                .device_ip = cards.device_ips.empty() ? "" : cards.device_ips[i],
                                .rank_id = rank++});
  }
  // What is written must be what is read: one set of rules for both.
  return parse_rank_table(rank_table_text(table), "this table");
}

Result<RankTable> merge_rank_tables(std::span<const RankTable> tables) {
  std::vector<ServerCards> servers;
  for (const RankTable& table : tables) {
    if (table.version != rank_table_version)
      return wrong_table(fmt::format("a table of version {}", table.version),
                         "it says which super pods its servers are in, and cannot be merged: take the one "
                         "that its platform has made of all servers");
    for (std::size_t i = 0; i < table.servers.size(); ++i) {
      ServerCards& cards = servers.emplace_back(ServerCards{.server_id = table.servers[i].server_id});
      for (const auto& device : table.ranked(i)) {
        cards.device_ids.push_back(device.device_id);
        cards.device_ips.push_back(device.device_ip);
      }
    }
  }
  return make_rank_table(servers);
}

Result<std::map<std::int64_t, std::string>> parse_hccn_conf(std::string_view text, std::string_view name) {
  constexpr std::string_view prefix = "address_";
  std::map<std::int64_t, std::string> cards;
  for (std::size_t line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (!line.starts_with(prefix)) continue;
    const std::size_t equals = line.find('=');
    const auto id = whole_number(line.substr(prefix.size(), equals - prefix.size()));
    const auto ip = equals == std::string_view::npos ? Result<std::string>(fail(Code::corrupt, ""))
                                                     : net::parse_ip(line.substr(equals + 1));
    if (!id || *id > device_id_max || !ip)
      return wrong_table(fmt::format("{}: line {}", name, line_number),
                         fmt::format("'{}' is not like address_0=192.168.1.8", shown(line)));
    if (!cards.emplace(*id, *ip).second)
      return wrong_table(fmt::format("{}: line {}", name, line_number),
                         fmt::format("card {} has an address already", *id));
  }
  return cards;
}

Result<std::vector<std::int64_t>> parse_device_ids(std::string_view text) {
  std::vector<std::int64_t> ids;
  std::set<std::int64_t> seen;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string_view part = text.substr(start, end - start);
    const std::size_t dash = part.find('-');
    const auto first = whole_number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : whole_number(part.substr(dash + 1));
    if (!first || !last || *first > *last || *last > device_id_max)
      return wrong_table(
          fmt::format("'{}'", shown(text)),
          fmt::format("cards are numbers from 0 to {}, such as 0-7 or 0,2,4-5", device_id_max));
    for (std::int64_t id = *first; id <= *last; ++id) {
      if (!seen.insert(id).second)
        return wrong_table(fmt::format("'{}'", shown(text)), fmt::format("card {} is there twice", id));
      ids.push_back(id);
    }
    start = end + 1;
  }
  return ids;
}

}  // namespace muster::launch
