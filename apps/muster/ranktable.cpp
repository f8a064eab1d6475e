// muster ranktable make|merge|check: the file that tells an Ascend job its cards.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "commands.h"
#include "muster/launch/launch.h"
#include "muster/net/net.h"

namespace muster::app {
namespace {

using launch::RankTable;
using launch::ServerCards;

constexpr const char* default_hccn_conf = "/etc/hccn.conf";

struct MakeFlags {
  std::vector<std::string> servers;  // "ID", or "ID=IP,IP"
  std::string devices;
  std::string hccn_conf;
  std::string out;
};

Result<RankTable> read_table(const std::string& path) {
  auto file = net::read_small_file(path, launch::rank_table_bytes_max);
  if (!file) return fail(file.error());
  return launch::parse_rank_table(file->text, path);
}

Result<> write_table(const RankTable& table, const std::string& out) {
  const std::string text = launch::rank_table_text(table);
  if (out.empty()) {
    fmt::print("{}", text);
    return {};
  }
  MUSTER_TRY_VOID(real_files().write(out, std::as_bytes(std::span(text))));
  fmt::print("{}: servers: {}, devices: {}\n", out, table.servers.size(), table.device_count());
  return {};
}

// The address by which other hosts are likely to know this one.
std::string own_address() {
  const auto addresses = net::local_addresses();
  if (addresses)
    for (const std::string& address : *addresses)
      if (!net::is_loopback(address) && address.find('%') == std::string::npos) return address;
  return "127.0.0.1";
}

// The cards of this server: those that are asked for, with the addresses that its configuration names.
Result<ServerCards> own_cards(const MakeFlags& flags) {
  std::map<std::int64_t, std::string> known;
  std::error_code ignored;
  const bool is_named = !flags.hccn_conf.empty();
  const std::string conf = is_named ? flags.hccn_conf : default_hccn_conf;
  if (is_named || std::filesystem::exists(conf, ignored)) {
    MUSTER_TRY(const net::SmallFile file, net::read_small_file(conf, launch::rank_table_bytes_max));
    MUSTER_TRY(known, launch::parse_hccn_conf(file.text, conf));
  }
  ServerCards cards{.server_id = flags.servers.empty() ? own_address() : flags.servers.front()};
  if (!flags.devices.empty()) {
    MUSTER_TRY(cards.device_ids, launch::parse_device_ids(flags.devices));
  } else {
    for (const auto& [id, ip] : known) cards.device_ids.push_back(id);
    if (known.empty())
      return fail(Code::invalid_argument,
                  fmt::format("{} names no cards: say which there are, for example --devices 0-7", conf));
  }
  if (known.empty()) return cards;
  for (const std::int64_t id : cards.device_ids) {
    const auto found = known.find(id);
    if (found == known.end())
      return fail(Code::not_found,
                  fmt::format("--devices {}: {} has no address of card {}", flags.devices, conf, id));
    cards.device_ips.push_back(found->second);
  }
  return cards;
}

// "10.0.0.1=192.168.1.8,192.168.1.9": cards 0, 1 ... of a server that may be another one.
ServerCards named_cards(const std::string& text) {
  const std::size_t equals = text.find('=');
  ServerCards cards{.server_id = text.substr(0, equals)};
  for (std::size_t start = equals + 1; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    cards.device_ids.push_back(static_cast<std::int64_t>(cards.device_ids.size()));
    cards.device_ips.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return cards;
}

Result<std::vector<ServerCards>> all_cards(const MakeFlags& flags) {
  const bool is_listed = !flags.servers.empty() && flags.servers.front().find('=') != std::string::npos;
  std::vector<ServerCards> cards;
  if (!is_listed && flags.servers.size() < 2) {
    MUSTER_TRY(cards.emplace_back(), own_cards(flags));
    return cards;
  }
  if (!flags.devices.empty() || !flags.hccn_conf.empty())
    return fail(Code::invalid_argument,
                "--devices and --hccn-conf are about this server alone: leave them out, or make a table on "
                "each server and use `muster ranktable merge`");
  for (const std::string& server : flags.servers) {
    if (server.find('=') == std::string::npos)
      return fail(Code::invalid_argument,
                  fmt::format("--server {0}: with several servers each names its cards' addresses, for "
                              "example {0}=192.168.1.8,192.168.1.9",
                              server));
    cards.push_back(named_cards(server));
    if (std::ranges::find(cards.back().device_ips, "") != cards.back().device_ips.end())
      return fail(Code::invalid_argument,
                  fmt::format("--server {}: the address of a card is missing: each card has one, for example "
                              "{}=192.168.1.8,192.168.1.9",
                              server, cards.back().server_id));
  }
  return cards;
}

int make(const MakeFlags& flags) {
  const auto cards = all_cards(flags);
  if (!cards) return refuse("ranktable make", cards.error().message);
  const auto table = launch::make_rank_table(*cards);
  if (!table) return refuse("ranktable make", table.error().message);
  if (const auto written = write_table(*table, flags.out); !written)
    return refuse("ranktable make", written.error().message);
  return 0;
}

int merge(const std::vector<std::string>& files, const std::string& out) {
  std::vector<RankTable> tables;
  for (const std::string& file : files) {
    auto table = read_table(file);
    if (!table) return refuse("ranktable merge", table.error().message);
    tables.push_back(*std::move(table));
  }
  const auto merged = launch::merge_rank_tables(tables);
  if (!merged) return refuse("ranktable merge", merged.error().message);
  if (const auto written = write_table(*merged, out); !written)
    return refuse("ranktable merge", written.error().message);
  return 0;
}

int check(const std::string& file) {
  const auto table = read_table(file);
  if (!table) return refuse("ranktable check", table.error().message);
  fmt::print("{}: servers: {}, devices: {}\n", file, table->servers.size(), table->device_count());
  for (std::size_t i = 0; i < table->servers.size(); ++i) {
    fmt::print("server {}: {}\n", i, table->servers[i].server_id);
    for (const auto& device : table->ranked(i))
      fmt::print("  rank {:<5} card {:<4} {}\n", device.rank_id, device.device_id,
                 device.device_ip.empty() ? "-" : device.device_ip);
  }
  return 0;
}

void add_make(CLI::App& ranktable, Invocation& invocation) {
  auto flags = std::make_shared<MakeFlags>();
  CLI::App* command = ranktable.add_subcommand("make", "Write the table of this server, or of several");
  command
      ->add_option("--server", flags->servers,
                   "Name of this server (default: its address); or ID=IP,IP,... for each of several, with "
                   "the addresses of cards 0, 1, ...")
      ->type_name("ID")
      ->take_all();
  command->add_option("--devices", flags->devices, "Cards of this server: 0-7 (default: all of hccn.conf)")
      ->type_name("CARDS");
  command
      ->add_option(
          "--hccn-conf", flags->hccn_conf,
          fmt::format("Where the cards' addresses are (default: {}, if it is there)", default_hccn_conf))
      ->type_name("FILE");
  command->add_option("--out", flags->out, "File to write (default: print it)")->type_name("FILE");
  command->callback([flags, &invocation] { invocation.exit_code = make(*flags); });
}

void add_merge(CLI::App& ranktable, Invocation& invocation) {
  auto files = std::make_shared<std::vector<std::string>>();
  auto out = std::make_shared<std::string>();
  CLI::App* command =
      ranktable.add_subcommand("merge", "Merge tables into one: ranks are numbered from file to file");
  command->add_option("files", *files, "Tables, in the order of their ranks")->required();
  command->add_option("--out", *out, "File to write (default: print it)")->type_name("FILE");
  command->callback([files, out, &invocation] { invocation.exit_code = merge(*files, *out); });
}

}  // namespace

void add_ranktable(CLI::App& app, Invocation& invocation) {
  CLI::App* ranktable = app.add_subcommand("ranktable", "Rank tables of Ascend jobs: make, merge, check");
  ranktable->require_subcommand(1);
  ranktable->footer(
      "\nOn one server, then on each of several and together:\n"
      "  muster ranktable make --devices 0-7 --out table.json\n"
      "  muster ranktable merge server_0.json server_1.json --out table.json\n"
      "  muster run --preset ascend --rank-table table.json train.py");
  add_make(*ranktable, invocation);
  add_merge(*ranktable, invocation);
  auto file = std::make_shared<std::string>();
  CLI::App* command = ranktable->add_subcommand("check", "Print a table, or the first error in it");
  command->add_option("file", *file, "The table")->required();
  command->callback([file, &invocation] { invocation.exit_code = check(*file); });
}

}  // namespace muster::app
