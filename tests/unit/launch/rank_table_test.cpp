#include "muster/launch/rank_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/base/mentions.h"

namespace muster::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr std::string_view two_servers = R"({
  "version": "1.0",
  "status": "completed",
  "server_count": "2",
  "server_list": [
    {
      "server_id": "node_0",
      "device": [
        {"device_id": "0", "device_ip": "192.168.1.8", "rank_id": "0"},
        {"device_id": "1", "device_ip": "192.168.1.9", "rank_id": "1"}
      ]
    },
    {
      "server_id": "node_1",
      "host_nic_ip": "reserve",
      "device": [
        {"device_id": "5", "device_ip": "fd00::5", "rank_id": "3"},
        {"device_id": "4", "device_ip": "fd00::4", "rank_id": "2"}
      ]
    }
  ]
}
)";

std::string devices_text(const RankTable& table, std::size_t server) {
  std::string text;
  for (const auto& device : table.ranked(server))
    text += std::to_string(device.rank_id) + ":" + std::to_string(device.device_id) + "@" + device.device_ip +
            " ";
  return text;
}

TEST(RankTable, ListsTheCardsOfEachServerInTheOrderOfTheirRanks) {
  const auto table = parse_rank_table(two_servers, "t.json");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->device_count(), 4);
  EXPECT_EQ(table->servers[0].server_id, "node_0");
  EXPECT_EQ(table->servers[1].server_id, "node_1");
  EXPECT_EQ(devices_text(*table, 0), "0:0@192.168.1.8 1:1@192.168.1.9 ");
  EXPECT_EQ(devices_text(*table, 1), "2:4@fd00::4 3:5@fd00::5 ");
}

TEST(RankTable, OfASingleServerNeedsNoAddressesOfItsCards) {
  const auto table = parse_rank_table(R"({"version": "1.0", "status": "completed", "server_count": "1",
    "server_list": [{"server_id": "a", "device": [
      {"device_id": "0", "rank_id": "0"}, {"device_id": "1", "device_ip": "", "rank_id": "1"}]}]})",
                                      "t.json");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(devices_text(*table, 0), "0:0@ 1:1@ ");
}

// `two_servers` with one edit: the value at `pointer` replaced, or taken away where `value` is discarded.
std::string edited(const std::string& pointer, const std::string& value) {
  auto table = nlohmann::json::parse(two_servers);
  const nlohmann::json::json_pointer at(pointer);
  if (value.empty())
    table.at(at.parent_pointer()).erase(at.back());
  else
    table[at] = nlohmann::json::parse(value);
  return table.dump();
}

std::string error_of(std::string_view text) {
  const auto table = parse_rank_table(text, "t.json");
  return table ? "no error" : table.error().message;
}

TEST(RankTable, OfSuperPodsHasTheSameServersAndCardsAndIsNotMerged) {
  auto text = nlohmann::json::parse(two_servers);
  text["version"] = "1.2";
  text["super_pod_list"] = nlohmann::json::parse(
      R"([{"super_pod_id": "0", "server_list": [{"server_id": "node_0"}, {"server_id": "node_1"}]}])");
  text["server_list"][0]["device"][0]["super_device_id"] = "17";
  text["server_list"][0]["host_ip"] = "10.0.0.1";
  const auto table = parse_rank_table(text.dump(), "t.json");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(devices_text(*table, 1), "2:4@fd00::4 3:5@fd00::5 ");
  const auto merged = merge_rank_tables(std::span(&*table, 1));
  ASSERT_FALSE(merged);
  EXPECT_THAT(merged.error().message, HasSubstr("a table of version 1.2: it says which super pods"));
}

TEST(RankTable, OfAnySizeIsRefusedAtOnce) {
  std::string text = R"({"version": "1.0", "status": "completed", "server_count": "1", "server_list": [{})";
  while (text.size() + 8 < rank_table_bytes_max) text += ",{}";
  EXPECT_THAT(error_of(text + "]}"), Mentions("t.json", "400000", "values"));
}

struct BadTable {
  std::string pointer;
  std::string value;  // empty: the field is taken away
  std::string message;
};

TEST(RankTable, SaysExactlyWhatIsWrong) {
  const std::string first = "/server_list/0/device/0";
  const std::vector<BadTable> rows = {
      {"/version", "", "t.json: 'version' is missing, for example \"version\": \"1.0\""},
      {"/version", "1.0", "t.json: 'version' is 1.0 without quotes: in a rank table it is a text, \"1.0\""},
      {"/version", "\"2.0\"", "t.json: 'version' is '2.0', and only 1.0 and 1.2 are known here"},
      {"/status", "", "t.json: 'status' is missing, for example \"status\": \"completed\""},
      {"/status", "\"initializing\"",
       "t.json: 'status' is 'initializing', and not 'completed': its writer has not finished it "
       "yet"},
      {"/status", "\"done\"",
       "t.json: 'status' is 'done', and not 'completed': a table that can be used says so"},
      {"/group_list", "[]",
       "t.json: it is of the older form with 'group_list': make one of version 1.0 with `muster ranktable`"},
      {"/server_count", "", "t.json: 'server_count' is missing, for example \"server_count\": \"0\""},
      {"/server_count", "2",
       "t.json: 'server_count' is 2 without quotes: in a rank table it is a text, \"2\""},
      {"/server_count", "\"two\"", "t.json: 'server_count' is 'two', and not a whole number from 0 to 16384"},
      {"/server_count", "\"3\"", "t.json: 'server_count' is 3 and 'server_list' has 2"},
      {"/server_list", "", "t.json: the list 'server_list' is missing"},
      {"/server_list", "{}", "t.json: 'server_list' is a list, not object"},
      {"/server_list", "[]", "t.json: the list 'server_list' is empty"},
      {"/server_list/1", "7", "t.json: server_list[1] is an object, not number"},
      {"/server_list/1/server_id", "",
       "t.json: server_list[1]: 'server_id' is missing, for example \"server_id\": \"10.0.0.1\""},
      {"/server_list/1/server_id", "\"\"", "t.json: server_list[1]: 'server_id' is empty"},
      {"/server_list/1/server_id", "\"node_0\"",
       "t.json: server_list[0] and server_list[1] have the same server_id 'node_0'"},
      {"/server_list/1/device", "", "t.json: server_list[1]: the list 'device' is missing"},
      {"/server_list/1/device", "[]", "t.json: server_list[1]: the list 'device' is empty"},
      {first, "[]", "t.json: server_list[0]: device[0] is an object, not array"},
      {first + "/device_id", "",
       "t.json: server_list[0].device[0]: 'device_id' is missing, for example \"device_id\": \"0\""},
      {first + "/device_id", "\"-1\"",
       "t.json: server_list[0].device[0]: 'device_id' is '-1', and not a whole number from 0 to 4095"},
      {first + "/device_id", "\"1\"",
       "t.json: server_list[0].device[0] and server_list[0].device[1] have the same device_id 1"},
      {first + "/device_ip", "",
       "t.json: server_list[0].device[0]: 'device_ip' is missing, for example \"device_ip\": "
       "\"192.168.1.8\""},
      {first + "/device_ip", "\"\"",
       "t.json: server_list[0].device[0]: 'device_ip' is empty: cards of several servers need one"},
      {first + "/device_ip", "\"192.168.1.800\"",
       "t.json: server_list[0].device[0]: 'device_ip' is '192.168.1.800', and no IP address"},
      {first + "/device_ip", "\"192.168.1.9\"",
       "t.json: server_list[0].device[0] and server_list[0].device[1] have the same device_ip 192.168.1.9"},
      {first + "/rank_id", "",
       "t.json: server_list[0].device[0]: 'rank_id' is missing, for example \"rank_id\": \"0\""},
      {first + "/rank_id", "null", "t.json: server_list[0].device[0]: 'rank_id' is a text, not null"},
      {first + "/rank_id", "\"3\"",
       "t.json: server_list[0].device[0] and server_list[1].device[0] have the same rank_id 3"},
      {first + "/rank_id", "\"7\"",
       "t.json: rank_id 0 is missing and 7 is there: 4 devices have the ranks 0 to 3"},
      {first + "/rank_id", "\"1000001\"",
       "t.json: server_list[0].device[0]: 'rank_id' is '1000001', and not a whole number from 0 to 1000000"},
  };
  for (const BadTable& row : rows) EXPECT_EQ(error_of(edited(row.pointer, row.value)), row.message);
}

TEST(RankTable, IsNoOtherTextThanAnObject) {
  EXPECT_THAT(error_of(""), Mentions("t.json", "JSON", "line 1", "column 1"));
  EXPECT_THAT(error_of("[]"), Mentions("t.json", "JSON", "array"));
  EXPECT_THAT(error_of("{\n  \"version\": \"1.0\"\n  \"status\"}"),
              Mentions("t.json", "JSON", "line 3", "column 10"));
  EXPECT_THAT(error_of(R"({"version": "1.0", "version": "1.0"})"), Mentions("t.json", "'version'", "twice"));
  EXPECT_THAT(error_of(R"({"a": {"b": [{"c": 1}, {"c": 1, "c": 2}]}})"), Mentions("t.json", "'c'", "twice"));
  EXPECT_THAT(error_of(R"({"a": 1e999})"), Mentions("t.json", "large", "line 1", "column 11"));
  EXPECT_THAT(error_of(std::string(1000, '[')), Mentions("t.json", "deeply"));
  EXPECT_THAT(error_of(std::string(rank_table_bytes_max + 1, ' ')),
              Mentions("t.json", "4194305", "bytes", "4194304"));
}

std::vector<ServerCards> large_servers(int count) {
  std::vector<ServerCards> servers;
  for (int server = 0; server < count; ++server) {
    ServerCards& cards = servers.emplace_back(ServerCards{.server_id = std::to_string(server)});
    for (int i = 0; i < 4096; ++i) {
      cards.device_ids.push_back(i);
      cards.device_ips.push_back(fmt::format("10.{}.{}.{}", server, i / 256, i % 256));
    }
  }
  return servers;
}

TEST(RankTable, HasNoMoreCardsThanAJobMayHave) {
  const auto table = make_rank_table(large_servers(4));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->device_count(), 16384);
  const auto more = make_rank_table(large_servers(5));
  EXPECT_THAT(more.error().message, Mentions("table", "16384 devices"));
}

TEST(RankTable, IsMadeWithRanksThatCountOnFromServerToServer) {
  const std::vector<ServerCards> servers = {
      {.server_id = "a", .device_ids = {4, 0}, .device_ips = {"10.0.0.4", "10.0.0.1"}},
      {.server_id = "b", .device_ids = {1}, .device_ips = {"10.0.1.1"}}};
  const auto table = make_rank_table(servers);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(rank_table_text(*table), R"({
  "version": "1.0",
  "status": "completed",
  "server_count": "2",
  "server_list": [
    {
      "server_id": "a",
      "device": [
        {
          "device_id": "4",
          "device_ip": "10.0.0.4",
          "rank_id": "0"
        },
        {
          "device_id": "0",
          "device_ip": "10.0.0.1",
          "rank_id": "1"
        }
      ]
    },
    {
      "server_id": "b",
      "device": [
        {
          "device_id": "1",
          "device_ip": "10.0.1.1",
          "rank_id": "2"
        }
      ]
    }
  ]
}
)");
}

TEST(RankTable, IsNotMadeOfCardsThatCannotBe) {
  const auto error_of_cards = [](const std::vector<ServerCards>& servers) {
    const auto table = make_rank_table(servers);
    return table ? "no error" : table.error().message;
  };
  EXPECT_THAT(error_of_cards({{.server_id = "a", .device_ids = {0, 1}, .device_ips = {"10.0.0.1"}}}),
              Mentions("server", "1 addresses", "2 cards"));
  EXPECT_THAT(
      error_of_cards({{.server_id = "a", .device_ids = {0}}, {.server_id = "b", .device_ids = {0}}}),
      Mentions("server_list[0].device[0]", "'device_ip'", "example", "\"device_ip\"", "\"192.168.1.8\""));
  EXPECT_THAT(error_of_cards({{.server_id = "a", .device_ids = {}}}),
              Mentions("server_list[0]", "'device'", "empty"));
}

TEST(RankTable, IsMergedFromTablesOfSingleServers) {
  const std::vector<RankTable> tables = {
      *make_rank_table(std::vector<ServerCards>{
          {.server_id = "a", .device_ids = {0, 1}, .device_ips = {"10.0.0.1", "10.0.0.2"}}}),
      *make_rank_table(std::vector<ServerCards>{
          {.server_id = "b", .device_ids = {0, 1}, .device_ips = {"10.0.1.1", "10.0.1.2"}}})};
  const auto merged = merge_rank_tables(tables);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(devices_text(*merged, 1), "2:0@10.0.1.1 3:1@10.0.1.2 ");
  const auto same = merge_rank_tables(std::vector<RankTable>{tables[0], tables[0]});
  EXPECT_THAT(same.error().message, Mentions("table", "server_list[0]", "server_list[1]", "server_id 'a'"));
}

TEST(HccnConf, NamesTheAddressOfEachCard) {
  const auto cards = parse_hccn_conf(
      "address_1=192.168.2.9\r\nnetmask_0=255.255.255.0\n\naddress_0=192.168.1.9\n# no more", "hccn.conf");
  ASSERT_TRUE(cards) << cards.error().message;
  EXPECT_THAT(*cards, ElementsAre(Pair(0, "192.168.1.9"), Pair(1, "192.168.2.9")));
  const auto error_of_conf = [](std::string_view text) {
    return parse_hccn_conf(text, "hccn.conf").error().message;
  };
  EXPECT_THAT(error_of_conf("\naddress_x=1.2.3.4"),
              Mentions("hccn.conf", "line 2", "'address_x=1.2.3.4'", "like", "address_0=192.168.1.8"));
  EXPECT_THAT(error_of_conf("address_0"),
              Mentions("hccn.conf", "line 1", "'address_0'", "like", "address_0=192.168.1.8"));
  EXPECT_THAT(error_of_conf("address_0=here"),
              Mentions("hccn.conf", "line 1", "'address_0=here'", "like", "address_0=192.168.1.8"));
  EXPECT_THAT(error_of_conf("address_0=1.2.3.4\naddress_0=1.2.3.5"),
              Mentions("hccn.conf", "line 2", "card 0", "already"));
}

TEST(DeviceIds, AreNumbersAndRanges) {
  EXPECT_THAT(*parse_device_ids("0-3,6"), ElementsAre(0, 1, 2, 3, 6));
  EXPECT_THAT(*parse_device_ids("7"), ElementsAre(7));
  for (const char* text : {"", "a", "1,", "3-1", "-1", "0-9999999999999999999", "4096"})
    EXPECT_THAT(parse_device_ids(text).error().message, Mentions("numbers", "from 0", "to 4095")) << text;
  EXPECT_EQ(parse_device_ids("0-3,2").error().message, "'0-3,2': card 2 is there twice");
}

}  // namespace
}  // namespace muster::launch
