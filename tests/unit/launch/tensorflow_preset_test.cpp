#include <gmock/gmock.h>

#include "preset_text.h"

namespace muster::launch::testing {
namespace {
namespace tensorflow_preset_test {

using ::testing::ElementsAre;
using ::testing::StartsWith;

const Values quiet = {{"PYTHONUNBUFFERED", "1"}, {"OMP_WAIT_POLICY", "active"}};
const FixedEnvironment plain(quiet);

Values with(Values more) {
  more.insert(quiet.begin(), quiet.end());
  return more;
}

PartialSettings train(PartialSettings more = {}) {
  more.command = command({"python3", "mnist.py"});
  more.preset = said<std::string>("tensorflow", "--preset");
  return more;
}

// Two hosts that run the same line each; this is the second.
PartialSettings two_hosts() {
  return {.hosts = said(*parse_hosts("a,b"), "--hosts"),
          .self = said<std::int64_t>(1, "--node-rank"),
          .reach = said(Reach::each, "--hosts")};
}

using Ports = std::vector<std::vector<std::uint16_t>>;

std::vector<std::string> golden(const PartialSettings& settings, const Environment& environment = plain,
                                Ports ports = {{5001, 5002, 5003}, {6001, 6002, 6003}}) {
  if (!settings.hosts && !ports.empty()) ports.pop_back();  // there is one host
  return lines_of(spec_of(**find_preset({"tensorflow"}), settings, environment, std::move(ports)));
}

PortsWanted wanted(const PartialSettings& settings, const Environment& environment = plain) {
  return (*find_preset({"tensorflow"}))->ports_wanted(*complete(train(settings)), environment);
}

bool meets(const PartialSettings& settings, const Environment& environment = plain) {
  return (*find_preset({"tensorflow"}))->needs_rendezvous(*complete(train(settings)), environment);
}

TEST(TensorflowPreset, StartsOneProcessOnOneHostAlone) {
  EXPECT_THAT(golden(train()), ElementsAre("worker 0: $ python3 mnist.py > worker_0.log"));
  EXPECT_EQ(wanted({}).count, 0);
  EXPECT_FALSE(meets({}));
}

TEST(TensorflowPreset, StartsAWorkerAndAServerOnEachHost) {
  const std::string cluster = R"({"cluster":{"ps":["a:5001","b:6001"],"worker":["a:5002","b:6002"]},"task":)";
  const std::string hosts =
      "--task_index 1 --ps_hosts a:5001,b:6001 --worker_hosts a:5002,b:6002 --job_name ";
  EXPECT_THAT(golden(train(two_hosts())),
              ElementsAre("service ps 1: TF_CONFIG=" + cluster + R"({"type":"ps","index":1}})" +
                              " $ python3 mnist.py " + hosts + "ps > ps_1.log",
                          "worker 1: TF_CONFIG=" + cluster + R"({"type":"worker","index":1}})" +
                              " $ python3 mnist.py " + hosts + "worker > worker_1.log"));
  const PortsWanted ports = wanted(two_hosts());
  EXPECT_EQ(ports.count, 2);
  EXPECT_EQ(ports.min, 5000);
  EXPECT_EQ(ports.max, 10000);
  EXPECT_FALSE(ports.only_first);
  EXPECT_TRUE(meets(two_hosts()));
}

TEST(TensorflowPreset, NeedsNoRendezvousWhereThisLauncherStartsAll) {
  EXPECT_FALSE(meets({.hosts = said(*parse_hosts("a,b"), "--hosts"), .reach = said(Reach::ssh, "--hosts")}));
}

TEST(TensorflowPreset, TakesTheAddressesByWhichHostsHaveMetWhereNobodyNamedThem) {
  const JobSettings job = *complete(train({.host_count = said<std::int64_t>(2, "--nnodes"),
                                           .self = said<std::int64_t>(1, "--node-rank"),
                                           .scheduler = said<std::string>("a:9000", "--scheduler")}));
  const Preset& preset = **find_preset({"tensorflow"});
  const auto lines = lines_of(preset.spec({.job = job,
                                           .environment = plain,
                                           .ports = {{5001, 5002}, {6001, 6002}},
                                           .addresses = {"10.0.0.1", "fd00::2"}}));
  EXPECT_THAT(lines[1], ::testing::HasSubstr("--worker_hosts a:5002,[fd00::2]:6002 "));
  // Each launcher knows its own host's alone.
  const auto before = lines_of(preset.spec({.job = job, .environment = plain, .ports = {{5001, 5002}}}));
  EXPECT_THAT(before[1], ::testing::HasSubstr("--worker_hosts a:?,?:? "));
}

TEST(TensorflowPreset, MakesAClusterOfOneHostWhereTasksAreAskedFor) {
  const auto lines = golden(train({.slots = said<std::int64_t>(2, "-n")}));
  ASSERT_EQ(lines.size(), 3);
  EXPECT_THAT(lines[0], StartsWith("service ps 0: "));
  EXPECT_THAT(lines[2], ::testing::EndsWith("--task_index 1 --ps_hosts 127.0.0.1:5001 --worker_hosts "
                                            "127.0.0.1:5002,127.0.0.1:5003 --job_name worker > "
                                            "worker_1.log"));
  EXPECT_EQ(wanted({.slots = said<std::int64_t>(2, "-n")}).count, 3);
  EXPECT_EQ(golden(train({.servers = said<std::int64_t>(2, "--servers")})).size(), 3);
}

TEST(TensorflowPreset, DealsOutTheServersThatAreCountedHostByHost) {
  PartialSettings settings = two_hosts();
  settings.servers = said<std::int64_t>(3, "--servers");
  EXPECT_EQ(wanted(settings).count, 3);
  const auto lines = golden(train(settings));
  ASSERT_EQ(lines.size(), 2);
  EXPECT_THAT(lines[0], StartsWith("service ps 2: "));
  EXPECT_THAT(lines[0],
              ::testing::HasSubstr("--ps_hosts a:5001,a:5002,b:6001 --worker_hosts a:5003,b:6002 "));
}

TEST(TensorflowPreset, LetsAChiefDoTheWorkWhereTheStyleSaysSo) {
  const std::string cluster =
      R"({"cluster":{"chief":["127.0.0.1:5003"],"ps":["127.0.0.1:5001"],"worker":["127.0.0.1:5002"]},"task":)";
  EXPECT_THAT(golden(train({.style = said<std::string>("chief", "--style")})),
              ElementsAre("service ps 0: TF_CONFIG=" + cluster + R"({"type":"ps","index":0}})" +
                              " $ python3 mnist.py > ps_0.log",
                          "service worker 0: TF_CONFIG=" + cluster + R"({"type":"worker","index":0}})" +
                              " $ python3 mnist.py > worker_0.log",
                          "chief: TF_CONFIG=" + cluster + R"({"type":"chief","index":0}})" +
                              " $ python3 mnist.py > chief.log"));
  PartialSettings second = two_hosts();
  second.style = said<std::string>("chief", "--style");
  const auto lines = golden(train(second));
  ASSERT_EQ(lines.size(), 3);
  EXPECT_THAT(lines[0], StartsWith(R"(service ps 1: TF_CONFIG={"cluster":{"chief":["a:5003"],)"));
  EXPECT_EQ(lines[2], "waits for release");
}

TEST(TensorflowPreset, RunsTheOneTaskThatAPlatformsContainerIs) {
  const Values task = with({{"TF_PS_HOSTS", "[j-ps-0.j:6666,j-ps-1.j:6667]"},
                            {"TF_WORKER_HOSTS", "j-worker-0.j:7777,j-worker-1.j:7778"},
                            {"MA_TASK_NAME", "ps"},
                            {"MA_NUM_GPUS", "8"},
                            {"MA_NUM_HOSTS", "2"},
                            {"VC_TASK_INDEX", "1"},
                            {"VC_WORKER_HOSTS", "j-worker-0.j,j-worker-1.j"}});
  const FixedEnvironment environment(task);
  const PartialSettings settings = merged(train(), *platform_settings(environment));
  EXPECT_THAT(
      golden(settings, environment, {}),
      ElementsAre(
          R"(ps 1: TF_CONFIG={"cluster":{"ps":["j-ps-0.j:6666","j-ps-1.j:6667"],"worker":["j-worker-0.j:7777",)"
          R"("j-worker-1.j:7778"]},"task":{"type":"ps","index":1}} $ python3 mnist.py --task_index 1 )"
          "--ps_hosts j-ps-0.j:6666,j-ps-1.j:6667 --worker_hosts j-worker-0.j:7777,j-worker-1.j:7778 "
          "--job_name ps > ps_1.log"));
  EXPECT_EQ(wanted(settings, environment).count, 0);
  EXPECT_FALSE(meets(settings, environment));
}

struct BadSettings {
  PartialSettings settings;
  Values environment;
  std::string message;
};

TEST(TensorflowPreset, SaysWhatIsWrong) {
  const Values both = {{"TF_PS_HOSTS", "a:1"}, {"TF_WORKER_HOSTS", "b:1,c:1"}, {"MA_TASK_NAME", "worker"}};
  const auto but = [&](Values other) {
    other.insert(both.begin(), both.end());
    return other;
  };
  const std::vector<BadSettings> table = {
      {{.style = said<std::string>("env", "--style")},
       {},
       "--style env: the preset tensorflow has the styles arguments and chief"},
      {{.port = said<std::int64_t>(9000, "--port")},
       {},
       "--port 9000: each task of tensorflow has a port of its own, a free one from 5000 to 10000: leave it "
       "out"},
      {{.max_restarts = said<std::int64_t>(1, "--max-restarts")},
       {},
       "--max-restarts 1: with the preset tensorflow a process that was started again could not join the "
       "others: --restart group starts all of them again"},
      {{.rank_table = said<std::string>("t", "--rank-table")},
       {},
       "--rank-table t: a rank table is for the preset ascend, and this is tensorflow: leave it out"},
      {{.host_count = said<std::int64_t>(2, "--nnodes")},
       {},
       "several hosts need a common scheduler: --scheduler <address of the first host>:<port>"},
      {{},
       {{"MA_TASK_NAME", "ps"}},
       "MA_TASK_NAME=ps, but nothing says where the tasks are: set TF_PS_HOSTS and TF_WORKER_HOSTS"},
      {{}, {{"TF_PS_HOSTS", "a:1"}}, "TF_WORKER_HOSTS is not set, and its sister is: set both"},
      {{}, {{"TF_WORKER_HOSTS", "a:1"}}, "TF_PS_HOSTS is not set, and its sister is: set both"},
      {{}, but({{"TF_PS_HOSTS", "a"}}), "TF_PS_HOSTS: 'a' is not host:port"},
      {{},
       but({{"MA_TASK_NAME", "chief"}}),
       "MA_TASK_NAME=chief: with TF_PS_HOSTS and TF_WORKER_HOSTS it is ps or worker"},
      {{}, both, "TF_PS_HOSTS and TF_WORKER_HOSTS are set, but not which of them this is: set VC_TASK_INDEX"},
      {{}, but({{"VC_TASK_INDEX", "2"}}), "VC_TASK_INDEX=2: 2 tasks have the numbers from 0 to 1"},
      {{},
       but({{"VC_TASK_INDEX", "1"}, {"MA_TASK_NAME", "ps"}}),
       "VC_TASK_INDEX=1: 1 tasks have the numbers from 0 to 0"},
      {{.servers = said<std::int64_t>(1, "--servers")},
       but({{"VC_TASK_INDEX", "1"}}),
       "TF_PS_HOSTS and TF_WORKER_HOSTS name all tasks: leave out --servers"},
      {{.slots = said<std::int64_t>(2, "-n")},
       but({{"VC_TASK_INDEX", "1"}}),
       "TF_PS_HOSTS and TF_WORKER_HOSTS name all tasks: leave out -n 2"},
      {{.style = said<std::string>("chief", "--style")},
       but({{"VC_TASK_INDEX", "1"}}),
       "TF_PS_HOSTS and TF_WORKER_HOSTS name all tasks: leave out --style"},
  };
  for (const BadSettings& row : table)
    EXPECT_THAT(golden(train(row.settings), FixedEnvironment(row.environment)),
                ElementsAre("error: " + row.message));
}

}  // namespace tensorflow_preset_test
}  // namespace
}  // namespace muster::launch::testing
