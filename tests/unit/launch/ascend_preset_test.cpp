#include <gmock/gmock.h>

#include "preset_text.h"

#include "tests/unit/base/mentions.h"

namespace muster::launch::testing {
namespace {

using ::testing::ElementsAre;

const Values quiet = {{"PYTHONUNBUFFERED", "1"}, {"OMP_WAIT_POLICY", "active"}};
const FixedEnvironment plain(quiet);

PartialSettings train(PartialSettings more = {}) {
  more.command = command({"python3", "train.py"});
  more.preset = said<std::string>("ascend", "--preset");
  return more;
}

const auto slots = [](std::int64_t count) { return said(count, "-n"); };
const auto self = [](std::int64_t index) { return said(index, "--node-rank"); };

// Two servers of two cards each.
RankTable two_servers() {
  return *make_rank_table(std::vector<ServerCards>{
      {.server_id = "a", .device_ids = {0, 1}, .device_ips = {"10.0.0.1", "10.0.0.2"}},
      {.server_id = "b", .device_ids = {4, 5}, .device_ips = {"10.0.1.1", "10.0.1.2"}}});
}

// As the launcher goes: the table gives hosts and slots, then the preset.
Result<LaunchSpec> spec_with(PartialSettings settings, const RankTable& table,
                             const Environment& environment = plain) {
  settings.rank_table = said<std::string>("/t.json", "--rank-table");
  MUSTER_TRY(settings, with_rank_table(std::move(settings), table));
  MUSTER_TRY(const JobSettings job, complete(settings));
  const Preset& preset = **find_preset({"ascend"});
  MUSTER_TRY_VOID(preset.check(job, environment));
  return preset.spec({.job = job,
                      .environment = environment,
                      .run_folder = "/run/job",
                      .rank_table = rank_table_text(table)});
}

std::vector<std::string> golden(const PartialSettings& settings, const Environment& environment = plain) {
  return lines_of(spec_of(**find_preset({"ascend"}), settings, environment));
}

std::vector<std::string> golden_with(const PartialSettings& settings, const RankTable& table,
                                     const Environment& environment = plain) {
  return lines_of(spec_with(settings, table, environment));
}

TEST(AscendPreset, StartsAProcessForEachCardOfTheTablesServer) {
  EXPECT_THAT(golden_with(train({.self = self(0)}), two_servers()),
              ElementsAre("worker 0: ASCEND_DEVICE_ID=0 DEVICE_ID=0 RANK_ID=0 RANK_SIZE=4 "
                          "RANK_TABLE_FILE=/t.json $ python3 train.py > worker_0.log",
                          "worker 1: ASCEND_DEVICE_ID=1 DEVICE_ID=1 RANK_ID=1 RANK_SIZE=4 "
                          "RANK_TABLE_FILE=/t.json $ python3 train.py > worker_1.log"));
  // The logical number begins at 0 on each server, so that each has one process that may do what is done
  // once.
  EXPECT_THAT(golden_with(train({.self = self(1)}), two_servers()),
              ElementsAre("worker 2: ASCEND_DEVICE_ID=0 DEVICE_ID=4 RANK_ID=2 RANK_SIZE=4 "
                          "RANK_TABLE_FILE=/t.json $ python3 train.py > worker_2.log",
                          "worker 3: ASCEND_DEVICE_ID=1 DEVICE_ID=5 RANK_ID=3 RANK_SIZE=4 "
                          "RANK_TABLE_FILE=/t.json $ python3 train.py > worker_3.log"));
}

TEST(AscendPreset, MakesATableForAJobOfOneServerThatBringsNone) {
  const auto spec = spec_of(**find_preset({"ascend"}), train({.slots = slots(2)}), plain);
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_EQ(spec->files.size(), 1);
  EXPECT_EQ(spec->files[0].path, "/run/job/rank_table.json");
  const auto table = parse_rank_table(spec->files[0].contents, "made");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->device_count(), 2);
  EXPECT_EQ(spec->processes[1].environment.at("RANK_TABLE_FILE"), "/run/job/rank_table.json");
  EXPECT_EQ(spec->processes[1].environment.at("DEVICE_ID"), "1");
  EXPECT_EQ(spec->processes[1].environment.at("RANK_SIZE"), "2");
}

TEST(AscendPreset, NumbersCardsAsTheProcessesSeeThem) {
  Values shown = quiet;
  shown.emplace("ASCEND_RT_VISIBLE_DEVICES", "5,4");
  EXPECT_THAT(golden_with(train({.self = self(1)}), two_servers(), FixedEnvironment(shown)),
              ElementsAre("worker 2: ASCEND_DEVICE_ID=0 DEVICE_ID=1 RANK_ID=2 RANK_SIZE=4 "
                          "RANK_TABLE_FILE=/t.json $ python3 train.py > worker_2.log",
                          "worker 3: ASCEND_DEVICE_ID=1 DEVICE_ID=0 RANK_ID=3 RANK_SIZE=4 "
                          "RANK_TABLE_FILE=/t.json $ python3 train.py > worker_3.log"));
  EXPECT_THAT(
      golden_with(train({.self = self(0)}), two_servers(), FixedEnvironment(shown)),
      ElementsAre("error: /t.json: card 0 is not among those that ASCEND_RT_VISIBLE_DEVICES=5,4 shows"));
  const auto made = spec_of(**find_preset({"ascend"}), train({.slots = slots(1)}), FixedEnvironment(shown));
  EXPECT_EQ(parse_rank_table(made->files[0].contents, "made")->servers[0].devices[0].device_id, 5);
  EXPECT_EQ(made->processes[0].environment.at("DEVICE_ID"), "0");
  EXPECT_THAT(golden(train({.slots = slots(4)}), FixedEnvironment(shown)),
              ElementsAre("error: -n 4: ASCEND_RT_VISIBLE_DEVICES shows 2 cards"));
}

TEST(AscendPreset, FindsHostsByTheNamesOfTheServers) {
  const auto hosts = said(*parse_hosts("b,a"), "--hosts");
  const auto lines = golden_with(
      train({.hosts = hosts, .self = self(0), .reach = said(Reach::each, "--hosts")}), two_servers());
  EXPECT_THAT(lines[0], ::testing::StartsWith("worker 2: ASCEND_DEVICE_ID=0 DEVICE_ID=4 "));
  EXPECT_THAT(
      golden_with(train({.hosts = said(*parse_hosts("a,c"), "--hosts"),
                         .self = self(0),
                         .reach = said(Reach::each, "--hosts")}),
                  two_servers()),
      ElementsAre("error: /t.json has no server_id 'c', but those of other hosts: give all servers the "
                  "names of their hosts, or none"));
}

TEST(AscendPreset, TakesTheTableToHostsThatItReachesBySsh) {
  const FixedEnvironment launcher(Values{{"ASCEND_RT_VISIBLE_DEVICES", "7"}});  // does not travel
  const auto spec =
      spec_with(train({.hosts = said(*parse_hosts("x,y"), "--hosts"), .reach = said(Reach::ssh, "--hosts")}),
                two_servers(), launcher);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->files[0].path, "/run/job/rank_table.json");
  EXPECT_EQ(spec->processes[0].environment.at("RANK_TABLE_FILE"), "/run/job/rank_table.json");
}

TEST(AscendPreset, LeavesTheAcceleratorsThatAPlatformCountsToTheTable) {
  Values platform = quiet;
  platform.insert({{"MA_NUM_GPUS", "8"}, {"MA_NUM_HOSTS", "2"}, {"VC_TASK_INDEX", "1"}});
  const FixedEnvironment environment(platform);
  const auto lines =
      golden_with(merged(train(), *platform_settings(environment)), two_servers(), environment);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_THAT(lines[0], ::testing::StartsWith("worker 2: ASCEND_DEVICE_ID=0 DEVICE_ID=4 "));
}

TEST(AscendPreset, SaysWhereTheTableAndTheSettingsDiffer) {
  const auto error_of = [](const PartialSettings& settings, Values environment = {}) {
    return golden_with(train(settings), two_servers(), FixedEnvironment(std::move(environment)))[0];
  };
  EXPECT_THAT(error_of({}), Mentions("error", "/t.json", "2 servers", "--node-rank 0", "to 1"));
  EXPECT_THAT(error_of({.host_count = said<std::int64_t>(3, "--nnodes"), .self = self(0)}),
              Mentions("error", "--nnodes 3", "/t.json", "2 servers"));
  EXPECT_THAT(error_of({.hosts = said(*parse_hosts("a"), "--hosts")}),
              Mentions("error", "--hosts", "names", "1 hosts", "/t.json", "2 servers"));
  EXPECT_THAT(error_of({.self = self(0), .slots = slots(4)}),
              Mentions("error", "n 4", "'a'", "/t.json", "2 cards", "gets"));
  EXPECT_THAT(error_of({.hosts = said(*parse_hosts("a:2,b:8"), "--hosts"),
                        .self = self(0),
                        .reach = said(Reach::each, "--hosts")}),
              Mentions("error", "--hosts", "8 slots", "'b'", "/t.json", "2 cards", "gets"));
  EXPECT_THAT(error_of({.self = self(2)}),
              Mentions("error", "--node-rank 2", "2 hosts", "whole", "from 0", "to 1"));
  EXPECT_THAT(error_of({.self = self(0)}, {{"RANK_TABLE_FILE", "/other.json"}}),
              Mentions("error", "RANK_TABLE_FILE=/other.json", "contradicts", "--rank-table /t.json"));
}

TEST(AscendPreset, SaysWhatIsWrong) {
  EXPECT_THAT(golden(train({.host_count = said<std::int64_t>(2, "--nnodes"), .self = self(0)})),
              ElementsAre("error: several servers need a rank table: make one on each with `muster ranktable "
                          "make`, put them together with `muster ranktable merge`, and name it with "
                          "--rank-table"));
  EXPECT_THAT(golden(train({.style = said<std::string>("env", "--style")})),
              ElementsAre("error: --style env: the preset ascend has no styles: leave it out"));
  EXPECT_THAT(golden(train({.servers = said<std::int64_t>(1, "--servers")})),
              ElementsAre("error: --servers 1: the preset ascend has no parameter servers: leave it out"));
  EXPECT_THAT(golden(train({.max_restarts = said<std::int64_t>(1, "--max-restarts")})),
              ElementsAre("error: --max-restarts 1: with the preset ascend a process that was started again "
                          "could not join the others: --restart group starts all of them again"));
}

}  // namespace
}  // namespace muster::launch::testing
