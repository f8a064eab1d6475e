#include <gmock/gmock.h>

#include "preset_text.h"

namespace muster::launch::testing {
namespace {
namespace muster_preset_test {

using ::testing::ElementsAre;
using ::testing::Eq;

const FixedEnvironment plain(Values{{"PYTHONUNBUFFERED", "1"}, {"OMP_WAIT_POLICY", "active"}});

struct Flags {
  using Number = std::optional<std::int64_t>;
  using Text = std::optional<std::string>;
  Number workers = {}, servers = {}, node_count = {}, node_rank = {};
  Text scheduler = {};
  Number port = {}, max_restarts = {};
  Text tls_config = {}, client_password_file = {}, server_password_file = {}, token_file = {};
  std::vector<std::string> command = {};
};

PartialSettings settings(const Flags& flags) {
  PartialSettings all;
  const auto say = [](auto& setting, const auto& flag, const char* name) {
    if (flag) setting = {*flag, name};
  };
  if (!flags.command.empty()) all.command = command(flags.command);
  say(all.slots, flags.workers, "-n");
  say(all.servers, flags.servers, "--servers");
  say(all.host_count, flags.node_count, "--nnodes");
  say(all.self, flags.node_rank, "--node-rank");
  say(all.port, flags.port, "--port");
  say(all.max_restarts, flags.max_restarts, "--max-restarts");
  say(all.scheduler, flags.scheduler, "--scheduler");
  say(all.tls_config, flags.tls_config, "--tls-config");
  say(all.client_password_file, flags.client_password_file, "--client-password-file");
  say(all.server_password_file, flags.server_password_file, "--server-password-file");
  say(all.token_file, flags.token_file, "--token-file");
  return all;
}

Result<LaunchSpec> spec_of(const Flags& flags, const Environment& environment) {
  return testing::spec_of(**find_preset({"muster"}), settings(flags), environment, {{40000}});
}

std::vector<std::string> golden(const Flags& flags, const FixedEnvironment& environment) {
  return lines_of(spec_of(flags, environment));
}

TEST(MusterPreset, StartsASchedulerAndTheWorkersOnLoopback) {
  EXPECT_THAT(
      golden({.workers = 2, .command = {"python3", "net.py", "--epochs", "3"}}, plain),
      ElementsAre(
          "scheduler: MS_NODE_ID=scheduler MS_ROLE=MS_SCHED MS_SCHED_HOST=127.0.0.1 MS_SCHED_PORT=40000 "
          "MS_SERVER_NUM=0 MS_WORKER_NUM=2 MUSTER_RUN_FOLDER=/logs $ python3 net.py --epochs 3 > "
          "scheduler.log",
          "worker 0: MS_NODE_ID=0 MS_ROLE=MS_WORKER MS_SCHED_HOST=127.0.0.1 MS_SCHED_PORT=40000 "
          "MS_SERVER_NUM=0 MS_WORKER_NUM=2 MUSTER_RUN_FOLDER=/logs $ python3 net.py --epochs 3 > "
          "worker_0.log",
          "worker 1: MS_NODE_ID=1 MS_ROLE=MS_WORKER MS_SCHED_HOST=127.0.0.1 MS_SCHED_PORT=40000 "
          "MS_SERVER_NUM=0 MS_WORKER_NUM=2 MUSTER_RUN_FOLDER=/logs $ python3 net.py --epochs 3 > "
          "worker_1.log"));
}

TEST(MusterPreset, OfMindSporeHasWhatScriptsFindUnderMsrun) {
  const auto made = testing::spec_of(**find_preset({"mindspore"}),
                                     settings({.workers = 2,
                                               .node_count = 2,
                                               .node_rank = 1,
                                               .scheduler = "10.0.0.1:8118",
                                               .command = {"net.py"}}),
                                     plain);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->processes.size(), 2u);
  for (const std::size_t local : {0u, 1u}) {
    const auto& environment = made->processes[local].environment;
    EXPECT_EQ(environment.at("RANK_ID"), std::to_string(2 + local));
    EXPECT_EQ(environment.at("DEVICE_ID"), std::to_string(local));
    EXPECT_EQ(environment.at("RANK_SIZE"), "4");
  }
  const auto alone = testing::spec_of(**find_preset({"mindspore"}),
                                      settings({.workers = 1, .command = {"net.py"}}), plain, {{40000}});
  ASSERT_TRUE(alone) << alone.error().message;
  ASSERT_EQ(alone->processes[0].role, "scheduler");
  EXPECT_EQ(alone->processes[0].environment.at("RANK_ID"), "0");
  EXPECT_EQ(alone->processes[0].environment.at("DEVICE_ID"), "0");
}

TEST(MusterPreset, HandsOnTheFilesOfAProtectedJobByName) {
  EXPECT_THAT(
      golden({.workers = 1,
              .tls_config = "/c/config.json",
              .client_password_file = "fd:9",
              .server_password_file = "/c/server.password",
              .command = {"a.out"}},
             plain),
      ::testing::Contains("worker 0: MS_NODE_ID=0 MS_ROLE=MS_WORKER MS_SCHED_HOST=127.0.0.1 "
                          "MS_SCHED_PORT=40000 MS_SERVER_NUM=0 MS_WORKER_NUM=1 MUSTER_RUN_FOLDER=/logs "
                          "MUSTER_TLS_CLIENT_PASSWORD_FILE=fd:9 MUSTER_TLS_CONFIG=/c/config.json "
                          "MUSTER_TLS_SERVER_PASSWORD_FILE=/c/server.password $ a.out > worker_0.log"));
  EXPECT_THAT(
      golden({.workers = 1, .tls_config = "c", .token_file = "t", .command = {"a.out"}}, plain),
      ElementsAre("error: --tls-config and --token-file: a job has certificates or a token, not both"));
}

// A command line and an environment can be seen by others.
TEST(MusterPreset, HandsOutATokenInMemoryAndItsNameAlone) {
  JobSettings job = *complete(settings({.workers = 1, .command = {"a.out"}}));
  const FixedEnvironment inherited(Values{{"PYTHONUNBUFFERED", "1"}, {"MUSTER_RUN_TOKEN_FILE", "/outer"}});
  PresetInput input{.job = job, .environment = inherited, .run_folder = "/run/job", .token = "sesame"};
  const Preset& preset = **find_preset({"muster"});
  const auto spec = preset.spec(input);
  EXPECT_THAT(spec->files, ElementsAre(FileSpec{"/run/job/token", "sesame", true}));
  for (const ProcessSpec& process : spec->processes)
    EXPECT_EQ(process.environment.at("MUSTER_RUN_TOKEN_FILE"), "/run/job/token");
  EXPECT_THAT(lines_of(spec), ::testing::Contains(::testing::HasSubstr("sesame")).Times(1)) << "the file";

  job.token_file = {"/mine", "--token-file"};  // which is read here, and travels
  EXPECT_EQ(preset.spec(input)->processes[0].environment.at("MUSTER_TOKEN_FILE"), "/run/job/token");
  job.token_file = {};
  input.token.clear();  // an open job within another one
  EXPECT_EQ(preset.spec(input)->processes[0].environment.at("MUSTER_RUN_TOKEN_FILE"), "");
}

TEST(MusterPreset, MakesAJobRecoverWhoseProcessesAreStartedAgain) {
  const Flags flags{.workers = 1, .max_restarts = 3, .command = {"a.out"}};
  EXPECT_THAT(golden(flags, plain),
              ::testing::Contains(
                  "worker 0: MS_ENABLE_RECOVERY=1 MS_NODE_ID=0 MS_RECOVERY_PATH=/logs/recovery "
                  "MS_ROLE=MS_WORKER MS_SCHED_HOST=127.0.0.1 MS_SCHED_PORT=40000 MS_SERVER_NUM=0 "
                  "MS_WORKER_NUM=1 MUSTER_MAX_RESTARTS=3 MUSTER_RUN_FOLDER=/logs $ a.out > worker_0.log"));
  const auto chosen =
      spec_of(flags, FixedEnvironment(Values{{"MS_RECOVERY_PATH", "/mine"}, {"MS_ENABLE_RECOVERY", "1"}}));
  EXPECT_THAT(chosen->processes[1].environment,
              ::testing::Not(::testing::Contains(::testing::Key("MS_RECOVERY_PATH"))));
  EXPECT_THAT(
      golden(flags, FixedEnvironment(Values{{"MS_ENABLE_RECOVERY", "0"}})),
      ElementsAre("error: --max-restarts 3 needs recovery, and MS_ENABLE_RECOVERY=0 turns it off: leave one "
                  "out"));
  EXPECT_THAT(
      golden({.workers = 1, .max_restarts = -1, .command = {"a.out"}}, plain),
      ElementsAre(
          "error: --max-restarts -1: how often a process is started again is a whole number from 0 to "
          "1000000"));
}

TEST(MusterPreset, StartsServersBesideThem) {
  EXPECT_THAT(
      golden({.workers = 1, .servers = 1, .port = 8118, .command = {"a.out"}}, plain),
      ElementsAre(
          "scheduler: MS_NODE_ID=scheduler MS_ROLE=MS_SCHED MS_SCHED_HOST=127.0.0.1 "
          "MS_SCHED_PORT=8118 MS_SERVER_NUM=1 MS_WORKER_NUM=1 MUSTER_RUN_FOLDER=/logs $ a.out > "
          "scheduler.log",
          "server 0: MS_NODE_ID=0 MS_ROLE=MS_PSERVER MS_SCHED_HOST=127.0.0.1 "
          "MS_SCHED_PORT=8118 MS_SERVER_NUM=1 MS_WORKER_NUM=1 MUSTER_RUN_FOLDER=/logs $ a.out > server_0.log",
          "worker 0: MS_NODE_ID=0 MS_ROLE=MS_WORKER MS_SCHED_HOST=127.0.0.1 "
          "MS_SCHED_PORT=8118 MS_SERVER_NUM=1 MS_WORKER_NUM=1 MUSTER_RUN_FOLDER=/logs $ a.out > "
          "worker_0.log"));
}

// With copies the same rows are on servers whose numbers follow each other.
TEST(MusterPreset, DealsServersToTheHosts) {
  const auto servers_of = [](std::int64_t host) {
    const auto spec = spec_of({.workers = 1,
                               .servers = 3,
                               .node_count = 2,
                               .node_rank = host,
                               .scheduler = "h:9000",
                               .command = {"a.out"}},
                              plain);
    if (!spec) return std::vector{spec.error().message};
    std::vector<std::string> ids;
    for (const ProcessSpec& process : spec->processes)
      if (process.role == "server") ids.push_back(process.environment.at("MS_NODE_ID"));
    return ids;
  };
  EXPECT_THAT(servers_of(0), ElementsAre("0", "2"));
  EXPECT_THAT(servers_of(1), ElementsAre("1"));
}

TEST(MusterPreset, OnASecondHostStartsItsWorkersOnly) {
  EXPECT_THAT(
      golden({.workers = 2,
              .node_count = 3,
              .node_rank = 1,
              .scheduler = "[fd00::1]:9000",
              .command = {"a.out"}},
             plain),
      ElementsAre(
          "worker 2: MS_NODE_ID=2 MS_ROLE=MS_WORKER MS_SCHED_HOST=fd00::1 "
          "MS_SCHED_PORT=9000 MS_SERVER_NUM=0 MS_WORKER_NUM=6 MUSTER_RUN_FOLDER=/logs $ a.out > worker_2.log",
          "worker 3: MS_NODE_ID=3 MS_ROLE=MS_WORKER MS_SCHED_HOST=fd00::1 "
          "MS_SCHED_PORT=9000 MS_SERVER_NUM=0 MS_WORKER_NUM=6 MUSTER_RUN_FOLDER=/logs $ a.out > "
          "worker_3.log"));
}

TEST(MusterPreset, MakesPythonWriteItsLinesAtOnceUnlessTheUserChose) {
  const Flags flags{.workers = 1, .command = {"a.out"}};
  const auto unset = spec_of(flags, FixedEnvironment(Values{}));
  EXPECT_THAT(unset->processes[1].environment, ::testing::Contains(::testing::Pair("PYTHONUNBUFFERED", "1")));
  const auto chosen = spec_of(flags, FixedEnvironment(Values{{"PYTHONUNBUFFERED", ""}}));
  EXPECT_THAT(chosen->processes[1].environment,
              ::testing::Not(::testing::Contains(::testing::Key("PYTHONUNBUFFERED"))));
}

TEST(MusterPreset, KeepsWaitingThreadsFromSpinningUnlessTheUserChose) {
  using ::testing::Contains;
  using ::testing::Key;
  using ::testing::Not;
  using ::testing::Pair;
  const auto variables = [](std::int64_t workers, Values chosen) {
    const auto spec =
        spec_of({.workers = workers, .command = {"a.out"}}, FixedEnvironment(std::move(chosen)));
    return spec->processes.back().environment;
  };
  EXPECT_THAT(variables(2, {}), Contains(Pair("OMP_WAIT_POLICY", "passive")));
  EXPECT_THAT(variables(2, {}), Contains(Pair("OPENBLAS_THREAD_TIMEOUT", "4")));
  EXPECT_THAT(variables(1, {}), Not(Contains(Key("OPENBLAS_THREAD_TIMEOUT"))));
  EXPECT_THAT(variables(2, {{"OPENBLAS_THREAD_TIMEOUT", "26"}}),
              Not(Contains(Key("OPENBLAS_THREAD_TIMEOUT"))));
  EXPECT_THAT(variables(1, {}), Contains(Pair("GOMP_SPINCOUNT", "10000")));
  EXPECT_THAT(variables(1, {}), Not(Contains(Key("OMP_WAIT_POLICY"))));
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"})
    for (const std::int64_t workers : {1, 2}) {
      const auto found = variables(workers, {{name, "active"}});
      EXPECT_THAT(found, Not(Contains(Key("OMP_WAIT_POLICY"))));
      EXPECT_THAT(found, Not(Contains(Key("GOMP_SPINCOUNT"))));
    }
}

struct BadFlags {
  Flags flags;
  std::string message;
};

TEST(MusterPreset, SaysWhatIsWrongWithBadFlags) {
  const std::vector<std::string> run = {"a.out"};
  const std::vector<BadFlags> table = {
      {{.command = run}, "say how many workers to start on this host, for example: -n 4"},
      {{.workers = 0, .command = run}, "-n 0: the number of workers is a whole number from 1 to 16384"},
      {{.workers = 20000, .command = run},
       "-n 20000: the number of workers is a whole number from 1 to 16384"},
      {{.workers = 1, .servers = -1, .command = run},
       "--servers -1: the number of servers is a whole number from 0 to 16384"},
      {{.workers = 4}, "name what to run, for example: muster run -n 4 train.py --epochs 10"},
      {{.workers = 4, .node_count = 0, .command = run},
       "--nnodes 0: the number of hosts is a whole number from 1 to 16384"},
      {{.workers = 16384, .node_count = 2, .scheduler = "a:2000", .command = run},
       "--nnodes: 32768 workers on 2 hosts: at most 16384 in all"},
      {{.workers = 4, .node_count = 2, .node_rank = 2, .command = run},
       "--node-rank 2: with 2 hosts it is a whole number from 0 to 1"},
      {{.workers = 4, .node_rank = 1, .command = run},
       "--node-rank 1: with 1 host it is a whole number from 0 to 0"},
      {{.workers = 4, .node_count = 2, .command = run},
       "several hosts need a common scheduler: --scheduler <address of the first host>:<port>"},
      {{.workers = 4, .port = 80, .command = run}, "--port 80: a port is a whole number from 1024 to 65535"},
      {{.workers = 4, .port = 70000, .command = run},
       "--port 70000: a port is a whole number from 1024 to 65535"},
      {{.workers = 4, .scheduler = "a:2000", .port = 2000, .command = run},
       "--scheduler names a port already: leave out --port"},
      {{.workers = 4, .scheduler = "a", .command = run}, "--scheduler 'a': 'a' is not host:port"},
      {{.workers = 4, .scheduler = "a:80", .command = run},
       "--scheduler a:80: a port is a whole number from 1024 to 65535"},
  };
  for (const BadFlags& row : table) {
    const auto spec = spec_of(row.flags, plain);
    EXPECT_THAT(spec ? "no error" : spec.error().message, Eq(row.message));
  }
}

TEST(MusterPreset, NeedsAPortOnlyWhenNoneIsNamed) {
  const auto wanted = [](const Flags& flags) {
    return (*find_preset({"muster"}))->ports_wanted(*complete(settings(flags)), plain).count;
  };
  EXPECT_EQ(wanted({.workers = 1, .command = {"a"}}), 1);
  EXPECT_EQ(wanted({.workers = 1, .port = 2000, .command = {"a"}}), 0);
  EXPECT_EQ(wanted({.workers = 1, .scheduler = "a:2000", .command = {"a"}}), 0);
  EXPECT_EQ(wanted({.workers = 1, .node_count = 2, .scheduler = "a:2000", .command = {"a"}}), 0);
}

TEST(MusterPreset, RefusesAFirstHostByANameThatOthersCannotUse) {
  PartialSettings all = settings({.workers = 1, .command = {"a.out"}});
  all.hosts = {{{"localhost", 1}, {"b", 1}}, "--hosts"};
  all.reach = {Reach::ssh, "--hosts"};
  const Preset& preset = **find_preset({"muster"});
  EXPECT_THAT(
      lines_of(testing::spec_of(preset, all, plain)),
      ElementsAre("error: --hosts: the others know the first host by another name than 'localhost': write "
                  "that one, or --scheduler <its address>:<port>"));
  all.hosts->value.pop_back();
  EXPECT_TRUE(testing::spec_of(preset, all, plain, {{40000}}).has_value());
}

TEST(MusterPreset, RefusesExportedVariablesThatSaySomethingElse) {
  EXPECT_THAT(
      golden({.workers = 4, .command = {"a.out"}}, FixedEnvironment(Values{{"MS_WORKER_NUM", "8"}})),
      ElementsAre("error: MS_WORKER_NUM=8 contradicts a job of 4 workers: unset it, or leave that out"));
  EXPECT_THAT(
      golden({.workers = 4, .scheduler = "a:2000", .command = {"a.out"}},
             FixedEnvironment(Values{{"MS_WORKER_NUM", "4"}, {"MS_SCHED_HOST", "b"}})),
      ElementsAre("error: MS_SCHED_HOST=b contradicts --scheduler a:2000: unset it, or leave that out"));
}

TEST(MusterPreset, RefusesVariablesOfAllProcessesThatItSetsItself) {
  const auto told = [](const std::string& name, const std::string& value) {
    PartialSettings all = settings({.workers = 4, .command = {"a.out"}});
    all.environment[name] = {value, "--env"};
    return lines_of(testing::spec_of(**find_preset({"muster"}), all, plain, {{40000}}));
  };
  EXPECT_THAT(
      told("MS_WORKER_NUM", "7"),
      ElementsAre("error: --env MS_WORKER_NUM=7 contradicts a job of 4 workers: the launcher sets it, "
                  "leave it out"));
  EXPECT_THAT(
      told("MS_NODE_ID", "0"),
      ElementsAre("error: --env MS_NODE_ID=0: the launcher gives each process another one: leave it out"));
}

}  // namespace muster_preset_test
}  // namespace
}  // namespace muster::launch::testing
