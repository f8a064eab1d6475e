#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "muster/launch/launch.h"
#include "muster/launch/settings/hostlist.h"

namespace muster::launch {
namespace {
namespace slurm_test {

using ::testing::ElementsAre;
using ::testing::Eq;

using Values = std::map<std::string, std::string, std::less<>>;

std::string hosts_text(std::string_view list) {
  const auto names = parse_hostlist(list);
  return names ? fmt::format("{}", fmt::join(*names, " ")) : "error: " + names.error().message;
}

TEST(Hostlist, IsExpandedAsSlurmMeansIt) {
  EXPECT_THAT(hosts_text("n1"), Eq("n1"));
  EXPECT_THAT(hosts_text("n[1-3,07-09],x"), Eq("n1 n2 n3 n07 n08 n09 x"));
  EXPECT_THAT(hosts_text("n[08-11]-ib"), Eq("n08-ib n09-ib n10-ib n11-ib"));
  EXPECT_THAT(hosts_text("r[1-2]n[1-2]"), Eq("r1n1 r1n2 r2n1 r2n2"));
  EXPECT_THAT(hosts_text("a,b[3]"), Eq("a b3"));
}

TEST(Hostlist, ThatCannotBeUsedSaysWhy) {
  EXPECT_THAT(hosts_text(""), Eq("error: a name between two commas is missing"));
  EXPECT_THAT(hosts_text("a,,b"), Eq("error: a name between two commas is missing"));
  EXPECT_THAT(hosts_text("n[1-3"), Eq("error: the brackets do not match"));
  EXPECT_THAT(hosts_text("n]1["), Eq("error: the brackets do not match"));
  EXPECT_THAT(hosts_text("n[[1]]"), Eq("error: the brackets do not match"));
  EXPECT_THAT(hosts_text("n[3-1]"), Eq("error: '3-1' is no range of numbers, as in [1-3,07]"));
  EXPECT_THAT(hosts_text("n[]"), Eq("error: '' is no range of numbers, as in [1-3,07]"));
  EXPECT_THAT(hosts_text("n[-1]"), Eq("error: '-1' is no range of numbers, as in [1-3,07]"));
  EXPECT_THAT(hosts_text("n[0-99999999]"), Eq("error: '0-99999999' names more than 16384 hosts"));
  EXPECT_THAT(hosts_text("a[0-999]b[0-999]"), Eq("error: more than 16384 hosts"));
}

std::string counts_text(std::string_view list) {
  const auto counts = parse_task_counts(list);
  return counts ? fmt::format("{}", fmt::join(*counts, " ")) : "error: " + counts.error().message;
}

TEST(TaskCounts, AreThoseOfEachNode) {
  EXPECT_THAT(counts_text("4"), Eq("4"));
  EXPECT_THAT(counts_text("4(x2),3"), Eq("4 4 3"));
  for (const char* bad : {"", "0", "x", "4(x", "4(x)", "4(x0)", "4(2)", "4,", "-1"})
    EXPECT_THAT(counts_text(bad), ::testing::StartsWith("error: '")) << bad;
  EXPECT_THAT(counts_text("1(x99999)"), Eq("error: more than 16384 hosts or tasks"));
}

// Variables of task 1 of a step with one task on each of two nodes.
Values step(const Values& more = {}) {
  Values values = {{"SLURM_JOB_ID", "42"},
                   {"SLURM_STEP_ID", "1"},
                   {"SLURM_STEP_NODELIST", "n[1-2]"},
                   {"SLURM_STEP_NUM_NODES", "2"},
                   {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                   {"SLURM_NODEID", "1"},
                   {"SLURM_PROCID", "1"}};
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

// One line for each setting: "name=value (origin)".
std::vector<std::string> said_in(const Values& values, const PartialSettings& asked = {}) {
  const auto said = slurm_settings(FixedEnvironment(values), asked);
  if (!said) return {"error: " + said.error().message};
  std::vector<std::string> lines;
  const auto add = [&](const char* name, const auto& setting) {
    if (setting) lines.push_back(fmt::format("{}={} ({})", name, setting->value, setting->origin));
  };
  if (said->hosts) {
    std::string text;
    for (const HostSlots& host : said->hosts->value) text += fmt::format(" {}:{}", host.name, host.slots);
    lines.push_back(fmt::format("hosts={} ({})", text.substr(1), said->hosts->origin));
  }
  add("self", said->self);
  add("slots", said->slots);
  add("port", said->port);
  add("logs", said->log_folder);
  add("recovery", said->recovery_folder);
  return lines;
}

TEST(Slurm, WithOneTaskOnEachNodeMakesNodesHosts) {
  EXPECT_THAT(said_in(step()), ElementsAre("hosts=n1:0 n2:0 (SLURM_STEP_NODELIST)", "self=1 (SLURM_NODEID)",
                                           "slots=1 (SLURM_STEP_TASKS_PER_NODE)", "port=20673 (SLURM_JOB_ID)",
                                           "logs=muster-logs/slurm-42.1 (SLURM_JOB_ID)"));
  EXPECT_THAT(said_in(step({{"SLURM_GPUS_ON_NODE", "8"}})),
              ::testing::Contains("slots=8 (SLURM_GPUS_ON_NODE)"));
}

TEST(Slurm, WithSeveralTasksOnANodeMakesEachTaskAHostWithOneWorker) {
  EXPECT_THAT(said_in(step({{"SLURM_STEP_TASKS_PER_NODE", "2,1"}, {"SLURM_PROCID", "2"}})),
              ElementsAre("hosts=n1:1 :1 :1 (SLURM_STEP_NODELIST)", "self=2 (SLURM_PROCID)",
                          "port=20673 (SLURM_JOB_ID)", "logs=muster-logs/slurm-42.1 (SLURM_JOB_ID)"));
}

TEST(Slurm, WithOneTaskOnOneNodeSaysOnlyHowManyWorkersThereAre) {
  EXPECT_THAT(
      said_in(step({{"SLURM_STEP_NODELIST", "n1"},
                    {"SLURM_STEP_NUM_NODES", "1"},
                    {"SLURM_STEP_TASKS_PER_NODE", "1"},
                    {"SLURM_NODEID", "0"},
                    {"SLURM_PROCID", "0"}})),
      ElementsAre("slots=1 (SLURM_STEP_TASKS_PER_NODE)", "logs=muster-logs/slurm-42.1 (SLURM_JOB_ID)"));
}

TEST(Slurm, KeepsTheRecoveryFolderOfAJobThatIsStartedAgain) {
  PartialSettings recovers;
  recovers.max_restarts = Setting<std::int64_t>{3, "--max-restarts"};
  const Values again = step({{"SLURM_SUBMIT_DIR", "/shared/me"}, {"SLURM_RESTART_COUNT", "2"}});
  const std::string folder = "recovery=/shared/me/muster-recovery/slurm-42.1 (SLURM_JOB_ID)";
  EXPECT_THAT(said_in(again, recovers), ::testing::Contains(folder));
  EXPECT_THAT(said_in(again, recovers),
              ::testing::Contains("logs=muster-logs/slurm-42.1-restart-2 (SLURM_JOB_ID)"));
  EXPECT_THAT(said_in(step({{"SLURM_SUBMIT_DIR", "/shared/me"}, {"MS_ENABLE_RECOVERY", "1"}})),
              ::testing::Contains(folder));
  EXPECT_THAT(said_in(step({{"SLURM_SUBMIT_DIR", ""}, {"MS_ENABLE_RECOVERY", "1"}})),
              ::testing::Contains("recovery=muster-recovery/slurm-42.1 (SLURM_JOB_ID)"));
  EXPECT_THAT(said_in(step({{"MS_RECOVERY_PATH", "/mine"}, {"MS_ENABLE_RECOVERY", "1"}})),
              ::testing::Not(::testing::Contains(::testing::StartsWith("recovery"))));
}

TEST(Slurm, LeavesThePortToASchedulerThatIsNamed) {
  PartialSettings asked;
  asked.scheduler = Setting<std::string>{"10.0.0.1:9000", "--scheduler"};
  EXPECT_THAT(said_in(step(), asked), ::testing::Not(::testing::Contains(::testing::StartsWith("port"))));
}

TEST(Slurm, SaysNothingOutsideOfAStep) {
  EXPECT_THAT(said_in({}), ElementsAre());
  EXPECT_THAT(said_in({{"SLURM_JOB_ID", "42"}, {"SLURM_JOB_NUM_NODES", "1"}}), ElementsAre());
}

TEST(Slurm, RefusesWhatContradictsItAndNamesBoth) {
  PartialSettings two_slots;
  two_slots.slots = Setting<std::int64_t>{2, "-n"};
  PartialSettings pytorch;
  pytorch.preset = Setting<std::string>{"pytorch", "--preset"};
  const Values tasks = step({{"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}});
  EXPECT_THAT(
      said_in(tasks, two_slots),
      ElementsAre("error: -n 2 contradicts Slurm's 4 tasks on 2 nodes, each of which is one worker: leave "
                  "out -n, or start one task on each node (srun --ntasks-per-node=1)"));
  EXPECT_THAT(
      said_in(tasks, pytorch),
      ElementsAre("error: the preset 'pytorch' starts all processes of a node itself, and Slurm started 4 "
                  "tasks on 2 nodes: start one on each (srun --ntasks-per-node=1), and say -n"));
  EXPECT_THAT(
      said_in({{"SLURM_JOB_ID", "42"}, {"SLURM_JOB_NUM_NODES", "2"}}),
      ElementsAre("error: Slurm's job has 2 nodes, and only this one runs `muster run`: put srun before "
                  "it, as in srun --ntasks-per-node=1 muster run -n 4 train.py"));
}

TEST(Slurm, RefusesVariablesThatCannotBe) {
  const std::vector<std::pair<Values, std::string>> table = {
      {{{"SLURM_STEP_NODELIST", "n[1-2"}}, "SLURM_STEP_NODELIST=n[1-2: the brackets do not match"},
      {{{"SLURM_STEP_TASKS_PER_NODE", "two"}},
       "SLURM_STEP_TASKS_PER_NODE=two: 'two' is no number of tasks, as in 4(x2),3"},
      {{{"SLURM_STEP_NUM_NODES", "3"}},
       "SLURM_STEP_NUM_NODES=3 contradicts SLURM_STEP_NODELIST=n[1-2], which names 2"},
      {{{"SLURM_STEP_TASKS_PER_NODE", "1(x3)"}},
       "SLURM_STEP_TASKS_PER_NODE=1(x3) is about 3 nodes, and SLURM_STEP_NODELIST=n[1-2] names 2"},
      {{{"SLURM_NODEID", "2"}}, "SLURM_NODEID=2 and SLURM_PROCID=1: the step has 2 nodes and 2 tasks"},
      {{{"SLURM_PROCID", ""}}, "Slurm's SLURM_PROCID is not set, and SLURM_STEP_NODELIST is"},
      {{{"SLURM_JOB_ID", "-1"}}, "SLURM_JOB_ID=-1: a whole number from 0 to 4294967295"},
  };
  for (const auto& [more, message] : table)
    EXPECT_THAT(said_in(step(more)), ElementsAre("error: " + message));
}

// ---- Kubernetes
// --------------------------------------------------------------------------------------------

TEST(KubernetesSettings, TakeTheHostFromThePodsIndexWhereAJobHasSeveralHosts) {
  PartialSettings asked;
  const FixedEnvironment pod(Values{{"JOB_COMPLETION_INDEX", "1"}});
  EXPECT_FALSE(kubernetes_settings(pod, asked)->self.has_value());
  asked.host_count = Setting<std::int64_t>{2, "--nnodes"};
  const auto said = kubernetes_settings(pod, asked);
  EXPECT_THAT(said->self, Eq(Setting<std::int64_t>{1, "JOB_COMPLETION_INDEX"}));
  asked.self = Setting<std::int64_t>{0, "--node-rank"};
  EXPECT_THAT(check_agreement(asked, *said).error().message,
              Eq("--node-rank 0 contradicts JOB_COMPLETION_INDEX=1: leave one out"));
  EXPECT_THAT(
      kubernetes_settings(FixedEnvironment(Values{{"JOB_COMPLETION_INDEX", "one"}}), asked).error().message,
      Eq("JOB_COMPLETION_INDEX=one: a whole number from 0 to 16384"));
}

TEST(Roles, ThatDoNotExistAreNamed) {
  PartialSettings said;
  said.command = Setting<std::vector<std::string>>{{"./train"}, "command line"};
  said.roles = Setting<std::vector<std::string>>{{"sheduler"}, "--roles"};
  EXPECT_THAT(
      complete(said).error().message,
      Eq("--roles 'sheduler': there is no such role; there are scheduler, worker, server, ps, chief"));
}

}  // namespace slurm_test
}  // namespace
}  // namespace muster::launch
