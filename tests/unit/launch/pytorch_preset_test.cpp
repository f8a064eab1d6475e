#include <gmock/gmock.h>

#include "preset_text.h"

namespace muster::launch::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Values quiet = {{"PYTHONUNBUFFERED", "1"}, {"OMP_WAIT_POLICY", "active"}, {"OMP_NUM_THREADS", "2"}};
const FixedEnvironment plain(quiet);

Values with(Values more) {
  more.insert(quiet.begin(), quiet.end());
  return more;
}

PartialSettings train(PartialSettings more = {}) {
  more.command = command({"python3", "train.py", "--epochs", "3"});
  more.preset = said<std::string>("pytorch", "--preset");
  return more;
}

std::vector<std::string> golden(const PartialSettings& settings, const Environment& environment = plain,
                                std::vector<std::vector<std::uint16_t>> ports = {{40000}}) {
  return lines_of(spec_of(**find_preset({"pytorch"}), settings, environment, std::move(ports)));
}

const auto slots = [](std::int64_t count) { return said(count, "-n"); };

TEST(PytorchPreset, TellsTheOneProcessOfAHostWhereToMeet) {
  EXPECT_THAT(golden(train()),
              ElementsAre("worker 0: $ python3 train.py --epochs 3 --init_method tcp://127.0.0.1:40000 > "
                          "worker_0.log"));
}

TEST(PytorchPreset, TellsItByVariablesToWhoAsksForOne) {
  EXPECT_THAT(golden(train({.slots = slots(1)})), ElementsAre(HasSubstr("RANK=0")));
  EXPECT_THAT(golden(train({.slots = slots(1), .style = said<std::string>("init_method", "--style")})),
              ElementsAre(HasSubstr("--init_method")));
}

TEST(PytorchPreset, TellsHostsOfSeveralTheirRankToo) {
  EXPECT_THAT(
      golden(train({.host_count = said<std::int64_t>(3, "--nnodes"),
                    .self = said<std::int64_t>(1, "--node-rank"),
                    .scheduler = said<std::string>("10.0.0.1:9000", "--scheduler")})),
      ElementsAre("worker 1: $ python3 train.py --epochs 3 --init_method tcp://10.0.0.1:9000 --rank 1 "
                  "--world_size 3 > worker_1.log"));
  EXPECT_THAT(
      golden(train({.hosts = said(*parse_hosts("fd00::1,fd00::2"), "--hosts"),
                    .self = said<std::int64_t>(0, "--node-rank"),
                    .reach = said(Reach::each, "--hosts")}),
             plain, {}),
      ElementsAre("worker 0: $ python3 train.py --epochs 3 --init_method tcp://[fd00::1]:29500 --rank "
                  "0 --world_size 2 > worker_0.log"));
}

TEST(PytorchPreset, LeavesTheAcceleratorsThatAPlatformCountsToTheOneProcess) {
  const FixedEnvironment platform(with({{"MA_NUM_GPUS", "8"},
                                        {"MA_NUM_HOSTS", "2"},
                                        {"VC_TASK_INDEX", "1"},
                                        {"VC_WORKER_HOSTS", "job-worker-0.job,job-worker-1.job"}}));
  EXPECT_THAT(
      golden(merged(train(), *platform_settings(platform)), platform, {}),
      ElementsAre("worker 1: $ python3 train.py --epochs 3 --init_method tcp://job-worker-0.job:29500 "
                  "--rank 1 --world_size 2 > worker_1.log"));
}

TEST(PytorchPreset, TellsEachSlotItsRankByVariablesWhereSlotsAreAskedFor) {
  EXPECT_THAT(
      golden(train({.slots = slots(2)})),
      ElementsAre("worker 0: GROUP_RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "
                  "MASTER_PORT=40000 RANK=0 WORLD_SIZE=2 $ python3 train.py --epochs 3 > worker_0.log",
                  "worker 1: GROUP_RANK=0 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "
                  "MASTER_PORT=40000 RANK=1 WORLD_SIZE=2 $ python3 train.py --epochs 3 > worker_1.log"));
  EXPECT_THAT(golden(train({.style = said<std::string>("env", "--style")})),
              ElementsAre("worker 0: GROUP_RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 "
                          "MASTER_PORT=40000 RANK=0 WORLD_SIZE=1 $ python3 train.py --epochs 3 > "
                          "worker_0.log"));
}

TEST(PytorchPreset, CountsTheSlotsOfTheHostsBefore) {
  EXPECT_THAT(
      golden(train({.hosts = said(*parse_hosts("user@a:3,b:1"), "--hosts"),
                    .self = said<std::int64_t>(1, "--node-rank"),
                    .reach = said(Reach::each, "--hosts"),
                    .port = said<std::int64_t>(9000, "--port")})),
      ElementsAre("worker 3: GROUP_RANK=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=a MASTER_PORT=9000 "
                  "RANK=3 WORLD_SIZE=4 $ python3 train.py --epochs 3 > worker_3.log"));
}

TEST(PytorchPreset, GivesEachOfSeveralProcessesOneThreadUnlessTheUserChose) {
  const FixedEnvironment bare(Values{{"PYTHONUNBUFFERED", "1"}});
  EXPECT_THAT(golden(train({.slots = slots(2)}), bare)[0], ::testing::HasSubstr(" OMP_NUM_THREADS=1 "));
  EXPECT_THAT(golden(train({.slots = slots(1), .style = said<std::string>("env", "--style")}), bare)[0],
              ::testing::Not(::testing::HasSubstr("OMP_NUM_THREADS")));
}

TEST(PytorchPreset, TrustsNoVariablesThatSshDoesNotCarry) {
  const PartialSettings settings =
      train({.hosts = said(*parse_hosts("a:2,b:2"), "--hosts"), .reach = said(Reach::ssh, "--hosts")});
  EXPECT_THAT(golden(settings), ::testing::Contains(::testing::AllOf(
                                    ::testing::HasSubstr("OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive"),
                                    ::testing::HasSubstr(" PYTHONUNBUFFERED=1 "))));
}

TEST(PytorchPreset, LetsTheUsersVariablesWin) {
  PartialSettings settings = train();
  settings.environment.emplace("MASTER_ADDR", Setting<std::string>{"here", "--env"});
  EXPECT_THAT(golden(settings)[0], ::testing::StartsWith("worker 0: MASTER_ADDR=here $"));
}

TEST(PytorchPreset, TellsTheSlotsOfAJobThatRecoversWhereItsPointsLie) {
  const auto restarts = said<std::int64_t>(3, "--max-restarts");
  EXPECT_THAT(
      golden(train({.slots = slots(1), .max_restarts = restarts, .style = said<std::string>("env", "")})),
      ElementsAre("worker 0: GROUP_RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 "
                  "MASTER_PORT=40000 MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH=/logs/recovery "
                  "MUSTER_MAX_RESTARTS=3 MUSTER_RUN_ID=job RANK=0 WORLD_SIZE=1 $ python3 train.py "
                  "--epochs 3 > worker_0.log"));
  EXPECT_THAT(golden(train({.slots = slots(1),
                            .max_restarts = restarts,
                            .restart = said<std::string>("group", "--restart"),
                            .style = said<std::string>("env", "")})),
              ElementsAre("worker 0: GROUP_RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 "
                          "MASTER_PORT=40000 RANK=0 WORLD_SIZE=1 $ python3 train.py --epochs 3 > "
                          "worker_0.log"));
}

struct BadSettings {
  PartialSettings settings;
  Values environment;
  std::string message;
};

TEST(PytorchPreset, SaysWhatIsWrong) {
  const auto two_hosts = said<std::int64_t>(2, "--nnodes");
  const auto master = said<std::string>("a:9000", "--scheduler");
  const std::vector<BadSettings> table = {
      {{.slots = slots(4), .style = said<std::string>("init_method", "--style")},
       {},
       "-n 4: the style init_method runs one process on each host: leave it out, or take --style env"},
      {{.style = said<std::string>("elastic", "job.toml: style")},
       {},
       "job.toml: style elastic: the preset pytorch has the styles init_method and env"},
      {{.host_count = two_hosts},
       {},
       "several hosts need a common scheduler: --scheduler <address of the first host>:<port>"},
      {{.servers = said<std::int64_t>(1, "--servers")},
       {},
       "--servers 1: the preset pytorch has no parameter servers: leave it out"},
      {{.max_restarts = said<std::int64_t>(3, "--max-restarts")},
       {},
       "--max-restarts 3: the style init_method runs one process on each host, which starts others itself: "
       "take --style env, or --restart group"},
      {{.restart = said<std::string>("group", "--restart")},
       {},
       "--restart group: say how often, for example: --max-restarts 3"},
      {{.max_restarts = said<std::int64_t>(3, "--max-restarts"),
        .restart = said<std::string>("all", "--restart")},
       {},
       "--restart 'all': write process, and who died is started again, or group, and all processes are"},
      {{.host_count = two_hosts,
        .slots = slots(2),
        .scheduler = master,
        .max_restarts = said<std::int64_t>(3, "--max-restarts"),
        .restart = said<std::string>("group", "--restart")},
       {},
       "--restart group: launchers of several hosts do not start each other's processes again: let one "
       "launcher reach all of them, with --hosts and ssh"},
      {{.rank_table = said<std::string>("t.json", "--rank-table")},
       {},
       "--rank-table t.json: a rank table is for the preset ascend, and this is pytorch: leave it out"},
      {{.slots = slots(2)},
       {{"WORLD_SIZE", "8"}},
       "WORLD_SIZE=8 contradicts a job of 2 workers: unset it, or leave that out"},
      {{.slots = slots(2), .scheduler = master},
       {{"MASTER_ADDR", "b"}},
       "MASTER_ADDR=b contradicts --scheduler a:9000: unset it, or leave that out"},
      {{.slots = slots(2), .scheduler = master},
       {{"MASTER_PORT", "29500"}},
       "MASTER_PORT=29500 contradicts --scheduler a:9000: unset it, or leave that out"},
      {{.slots = slots(2), .environment = {{"WORLD_SIZE", {"8", "--env"}}}},
       {},
       "--env WORLD_SIZE=8 contradicts a job of 2 workers: the launcher sets it, leave it out"},
      {{.slots = slots(2), .environment = {{"RANK", {"0", "--env"}}}},
       {},
       "--env RANK=0: the launcher gives each process another one: leave it out"},
  };
  for (const BadSettings& row : table)
    EXPECT_THAT(golden(train(row.settings), FixedEnvironment(row.environment)),
                ElementsAre("error: " + row.message));
}

TEST(PytorchPreset, NeedsAPortOnlyWhenNoneIsNamed) {
  const Preset& preset = **find_preset({"pytorch"});
  const auto count = [&](const PartialSettings& settings) {
    return preset.ports_wanted(*complete(train(settings)), plain).count;
  };
  EXPECT_EQ(count({}), 1);
  EXPECT_EQ(count({.port = said<std::int64_t>(2000, "--port")}), 0);
  EXPECT_EQ(count({.scheduler = said<std::string>("a:2000", "--scheduler")}), 0);
  EXPECT_FALSE(preset.needs_rendezvous(*complete(train()), plain));
}

}  // namespace
}  // namespace muster::launch::testing
