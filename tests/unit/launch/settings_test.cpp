#include <gmock/gmock.h>

#include "preset_text.h"

#include "tests/unit/base/mentions.h"

namespace muster::launch::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Eq;
using ::testing::HasSubstr;

std::string message_of(const auto& result) { return result ? "no error" : result.error().message; }

std::vector<std::string> text_of(const std::vector<HostSlots>& hosts) {
  std::vector<std::string> texts;
  for (const HostSlots& host : hosts) texts.push_back(fmt::format("{} {}", host.name, host.slots));
  return texts;
}

// ---- Lists of hosts ---------------------------------------------------------------------------------------

TEST(Hosts, HaveNamesAndSlots) {
  EXPECT_THAT(text_of(*parse_hosts("a:4, b,[fd00::1]:2,fd00::2,user@c.example:1")),
              ElementsAre("a 4", "b 0", "fd00::1 2", "fd00::2 0", "user@c.example 1"));
}

TEST(Hosts, MayBeRangesAsSlurmWritesThem) {
  EXPECT_THAT(text_of(*parse_hosts("n[1-2,07]-ib:2,[fd00::1]:3,r[1,3]")),
              ElementsAre("n1-ib 2", "n2-ib 2", "n07-ib 2", "fd00::1 3", "r1 0", "r3 0"));
  EXPECT_THAT(message_of(parse_hosts("n[3-1]")),
              Eq("'n[3-1]': '3-1' is no range of numbers, as in [1-3,07]"));
}

TEST(Hosts, ThatAreNoneHaveErrors) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "a host without a name"},
      {"a,,b", "a host without a name"},
      {"a:", "host 'a' has '' slots: a whole number from 1 on"},
      {"a:0", "host 'a' has '0' slots: a whole number from 1 on"},
      {"a:4x", "host 'a' has '4x' slots: a whole number from 1 on"},
      {"-oProxyCommand=x", "'-oProxyCommand=x' is not the name of a host"},
      {"user@-x", "'user@-x' is not the name of a host"},
      {"a b", "'a b' is not the name of a host"},
      {"$(x)", "'$(x)' is not the name of a host"},
      {"[fd00::1]4", "'[fd00::1]4' is not the name of a host"},
      {"a:99999999999999999999", "host 'a' has '99999999999999999999' slots: a whole number from 1 on"},
  };
  for (const auto& [text, message] : table) EXPECT_THAT(message_of(parse_hosts(text)), Eq(message)) << text;
}

TEST(Hostfile, HoldsOneHostALineAsOpenMpiHasIt) {
  EXPECT_THAT(
      text_of(*parse_hostfile("# two hosts\n\n10.0.0.1 slots=2 max_slots=4  # the first\nb:8\r\nc", "f")),
      ElementsAre("10.0.0.1 2", "b 8", "c 0"));
}

TEST(Hostfile, IsReadAsOtherLaunchersWriteIt) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> table = {
      {"\xef\xbb\xbf"
       "a slots = 2\nb slots= 3 max_slots = 4\n",
       {"a 2", "b 3"}},
      {"a cpu=2\nb:4 ifhn=b-ib\n", {"a 2", "b 4"}},
      {"a\na\nb\na\n", {"a 3", "b 0"}},
      {"a slots=2\na slots=2\n", {"a 4"}},
      {"n[1-2] slots=2\n", {"n1 2", "n2 2"}},
  };
  for (const auto& [text, hosts] : table)
    EXPECT_THAT(text_of(*parse_hostfile(text, "hosts.txt")), ElementsAreArray(hosts)) << text;
}

TEST(Hostfile, ErrorsNameTheLine) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"a\nb slots=0\n", "hosts.txt, line 2: host 'b' has '0' slots: a whole number from 1 on"},
      {"a slot=2", "hosts.txt, line 1: 'slot=2' after host 'a': write slots=<number>"},
      {"# nothing\n", "hosts.txt: it names no host"},
  };
  for (const auto& [text, message] : table)
    EXPECT_THAT(message_of(parse_hostfile(text, "hosts.txt")), Eq(message)) << text;
}

// ---- Variables of a platform ------------------------------------------------------------------------------

TEST(Platform, NamesItsHostsAsItsContainersAreCalled) {
  const auto said = platform_settings(FixedEnvironment(Values{{"MA_NUM_HOSTS", "2"},
                                                              {"VC_TASK_INDEX", "1"},
                                                              {"MA_VJ_NAME", "job"},
                                                              {"MA_TASK_NAME", "worker"},
                                                              {"MA_NUM_GPUS", "8"}}));
  ASSERT_TRUE(said.has_value()) << said.error().message;
  EXPECT_THAT(text_of(said->hosts->value), ElementsAre("job-worker-0.job 0", "job-worker-1.job 0"));
  EXPECT_THAT(*said->self, Eq(Setting<std::int64_t>{1, "VC_TASK_INDEX"}));
  EXPECT_THAT(*said->slots, Eq(Setting<std::int64_t>{8, "MA_NUM_GPUS"}));
  EXPECT_THAT(said->reach->value, Eq(Reach::each));
}

TEST(Platform, TakesTheIndexOfTheTaskInTheOrderOfTheSeed) {
  Values values = {{"MA_NUM_HOSTS", "9"}, {"VK_TASK_INDEX", "3"}};
  const auto index = [&] { return platform_settings(FixedEnvironment(values))->self->value; };
  EXPECT_EQ(index(), 3);
  values["VC_TASK_INDEX"] = "2";
  EXPECT_EQ(index(), 2);
  values["MA_TASK_INDEX"] = "1";
  EXPECT_EQ(index(), 1);
  values["MA_TASK_INDEX"] = "";
  EXPECT_EQ(index(), 2);
}

TEST(Platform, ErrorsNameTheVariable) {
  const std::vector<std::pair<Values, std::string>> table = {
      {{{"MA_NUM_HOSTS", "x"}}, "MA_NUM_HOSTS=x: a whole number from 1 to 16384"},
      {{{"MA_NUM_HOSTS", "2"}},
       "the platform's variables name several hosts, but not which of them this is: set MA_TASK_INDEX, "
       "VC_TASK_INDEX or VK_TASK_INDEX"},
      {{{"VC_WORKER_HOSTS", "a,b"}, {"MA_NUM_HOSTS", "3"}},
       "VC_WORKER_HOSTS names 2 hosts, and MA_NUM_HOSTS=3"},
      {{{"VC_WORKER_HOSTS", "a,,b"}}, "VC_WORKER_HOSTS: a host without a name"},
  };
  for (const auto& [values, message] : table)
    EXPECT_THAT(message_of(platform_settings(FixedEnvironment(values))), Eq(message));
}

TEST(Platform, SaysNothingWhereThereIsNone) {
  EXPECT_THAT(*platform_settings(FixedEnvironment(Values{{"VC_TASK_INDEX", "0"}})), Eq(PartialSettings{}));
}

// ---- Guessing ---------------------------------------------------------------------------------------------

std::string guessed(std::string_view text, Values values = {}) {
  const auto guess = guess_preset("train.py", text, FixedEnvironment(std::move(values)));
  return guess ? guess->value + ", " + guess->origin : "nothing";
}

TEST(Guess, GoesByWhatAScriptImports) {
  EXPECT_THAT(guessed("import numpy\n    import torch.nn as nn\n"),
              Eq("pytorch, guessed: train.py imports torch"));
  for (const std::string_view line :
       {"import muster.torch", "from muster.torch import recoverable", "from muster import torch as backend"})
    EXPECT_THAT(guessed("import torch\n" + std::string(line)),
                Eq("pytorch, guessed: train.py imports muster.torch"));
  EXPECT_THAT(guessed("import muster, torch\n"), Eq("muster, guessed: train.py imports muster"));
  EXPECT_THAT(guessed("from tensorflow import keras"),
              Eq("tensorflow, guessed: train.py imports tensorflow"));
  EXPECT_THAT(guessed("import os, mindspore as ms"), Eq("mindspore, guessed: train.py imports mindspore"));
  EXPECT_THAT(guessed("import torch\nimport horovod.torch as hvd"),
              Eq("mpi, guessed: train.py imports horovod"));
  EXPECT_THAT(guessed("import torch\nimport muster"), Eq("muster, guessed: train.py imports muster"));
  EXPECT_THAT(guessed("import mindspore", {{"RANK_TABLE_FILE", "/t.json"}}),
              Eq("ascend, guessed: RANK_TABLE_FILE is set"));
}

TEST(Guess, SaysNothingOfWhatIsNotPlain) {
  EXPECT_THAT(guessed(""), Eq("nothing"));
  EXPECT_THAT(guessed("import torchvision_like\n# import torch\nprint('import torch')"), Eq("nothing"));
}

// ---- All sources together ---------------------------------------------------------------------------------

TEST(Settings, OfAStrongerSourceWin) {
  PartialSettings flags, file;
  flags.slots = said<std::int64_t>(4, "-n");
  flags.environment = {{"A", {"1", "--env"}}};
  file.slots = said<std::int64_t>(8, "job.toml: slots");
  file.port = said<std::int64_t>(9000, "job.toml: port");
  file.environment = {{"A", {"2", "job.toml"}}, {"B", {"3", "job.toml"}}};
  const PartialSettings all = merged(flags, file);
  EXPECT_THAT(*all.slots, Eq(Setting<std::int64_t>{4, "-n"}));
  EXPECT_THAT(all.port->value, Eq(9000));
  EXPECT_THAT(all.environment.at("A").value, Eq("1"));
  EXPECT_THAT(all.environment.at("B").value, Eq("3"));
}

TEST(Settings, ThatContradictThePlatformAreRefused) {
  PartialSettings flags, platform;
  flags.self = said<std::int64_t>(0, "--node-rank");
  platform.self = said<std::int64_t>(1, "VC_TASK_INDEX");
  EXPECT_THAT(message_of(check_agreement(flags, platform)),
              Eq("--node-rank 0 contradicts VC_TASK_INDEX=1: leave one out"));
  flags.self->value = 1;
  EXPECT_TRUE(check_agreement(flags, platform).has_value());
  flags.hosts = platform.hosts = said(std::vector<HostSlots>{{"a", 1}}, "--hosts");
  EXPECT_THAT(message_of(check_agreement(flags, platform)),
              Eq("--hosts names the hosts, and so does --hosts: leave one out"));
}

TEST(Settings, GiveEveryHostItsSlots) {
  PartialSettings parts;
  parts.command = command({"train.py"});
  parts.hosts = said(std::vector<HostSlots>{{"a", 2}, {"b", 0}, {"c", 1}}, "--hosts");
  parts.reach = said(Reach::each, "--hosts");
  parts.slots = said<std::int64_t>(4, "-n");
  parts.self = said<std::int64_t>(2, "--node-rank");
  const auto job = complete(parts);
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_THAT(text_of(job->hosts.value), ElementsAre("a 2", "b 4", "c 1"));
  EXPECT_THAT(job->slot_count(), Eq(7));
  EXPECT_THAT(job->first_slot(), Eq(6));
  EXPECT_THAT(job->argv(), ElementsAre("python3", "train.py"));
}

TEST(Settings, ThatCannotBeAreNamed) {
  struct Row {
    std::function<void(PartialSettings&)> change;
    std::string message;
  };
  const std::vector<Row> table = {
      {[](auto& all) {
         all.hosts = said(std::vector<HostSlots>{{"a", 1}, {"a", 1}}, "--hosts");
       },
       "--hosts: host 'a' stands there twice: give it more slots, as in a:4"},
      {[](auto& all) {
         all.hosts = said(std::vector<HostSlots>{{"a", 1}, {"b", 1}}, "--hosts");
         all.host_count = said<std::int64_t>(3, "--nnodes");
       },
       "--nnodes 3, but --hosts names 2 hosts"},
      {[](auto& all) {
         all.hosts = said(std::vector<HostSlots>{{"a", 1}, {"b", 1}}, "--hosts");
         all.reach = said(Reach::ssh, "--hosts");
         all.self = said<std::int64_t>(1, "--node-rank");
       },
       "--node-rank says which host this is, but this launcher starts all of --hosts by ssh: leave one out"},
      {[](auto& all) { all.tail = said(std::vector<std::int64_t>{1}, "--tail"); },
       "--tail 1: the ranks of this job are 0 to 0"},
      {[](auto& all) { all.command.reset(); },
       "name what to run, for example: muster run -n 4 train.py --epochs 10"},
  };
  for (const Row& row : table) {
    PartialSettings parts;
    parts.command = command({"a.out"});
    row.change(parts);
    EXPECT_THAT(message_of(complete(parts)), Eq(row.message));
  }
}

TEST(Presets, ThatDoNotExistAreNamedWithThoseThatDo) {
  EXPECT_THAT(message_of(find_preset({"mindspor", "--preset"})),
              Mentions("--preset 'mindspor'", "mean", "'mindspore'"));
}

// ---- The job file -----------------------------------------------------------------------------------------

const JobFileName job_toml{.name = "job.toml", .folder = "/jobs"};

TEST(JobFile, SaysAllThatFlagsCan) {
  const auto read = parse_job_file(R"(
preset = "muster"
script = "train/net.py"
arguments = ["--epochs", "10"]
hosts = ["a:4", "b:2"]
restarts = 3
logs = "out"
tail = [0, 3]
[environment]
OMP_NUM_THREADS = "2"
)",
                                   job_toml);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_THAT(read->command->value, ElementsAre("/jobs/train/net.py", "--epochs", "10"));
  EXPECT_THAT(text_of(read->hosts->value), ElementsAre("a 4", "b 2"));
  EXPECT_THAT(read->reach->value, Eq(Reach::ssh));
  EXPECT_THAT(*read->max_restarts, Eq(Setting<std::int64_t>{3, "job.toml: restarts"}));
  EXPECT_THAT(read->log_folder->value, Eq("/jobs/out"));
  EXPECT_THAT(read->tail->value, ElementsAre(0, 3));
  EXPECT_THAT(read->environment.at("OMP_NUM_THREADS"),
              Eq(Setting<std::string>{"2", "job.toml: environment.OMP_NUM_THREADS"}));
}

TEST(JobFile, ErrorsNameTheLineAndTheKey) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"slot = 4", "job.toml, line 1: slot is no setting: did you mean 'slots'?"},
      {"\nweather = 4", "job.toml, line 2: weather is no setting: docs/formats/job.md lists them"},
      {"\n[.a]",
       "job.toml, line 2: Error while parsing key: expected bare key starting character or string delimiter, "
       "saw '.'"},
      {"\u00e9 = 4",
       "job.toml, line 1: Error while parsing root table: expected keys, tables, whitespace or comments, "
       "saw '\u00e9'"},
      {"slots = \"4\"", "job.toml, line 1: slots has to be a whole number"},
      {"hosts = \"a\"", "job.toml, line 1: hosts has to be a list of texts"},
      {"hosts = [\"a:0\"]", "job.toml, line 1: hosts: host 'a' has '0' slots: a whole number from 1 on"},
      {"arguments = [\"x\"]", "job.toml, line 1: arguments without a script"},
      {"script = \"a.py\"\nmodule = \"a\"", "job.toml, line 2: module beside a script: leave one out"},
      {"tail = [0, \"1\"]", "job.toml, line 1: tail has to be a list of ranks"},
      {"[environment]\nA = 1", "job.toml, line 2: environment.A has to be a text"},
      {"environment = 1", "job.toml, line 1: environment has to be a table of texts"},
  };
  for (const auto& [text, message] : table)
    EXPECT_THAT(message_of(parse_job_file(text, job_toml)), Eq(message)) << text;
  EXPECT_THAT(message_of(parse_job_file("slots = \n", job_toml)), HasSubstr("job.toml, line 1: "));
}

TEST(JobFile, ThatWasPrintedMeansTheSameJob) {
  PartialSettings parts;
  parts.preset = said<std::string>("muster", "--preset");
  parts.command = command({"/jobs/net \"x\".py", "--name", "a\nb"});
  parts.hosts = said(std::vector<HostSlots>{{"a", 4}, {"fd00::1", 2}}, "--hosts");
  parts.reach = said(Reach::ssh, "--hosts");
  parts.ssh = said<std::string>("ssh -p 2222", "--ssh");
  parts.max_restarts = said<std::int64_t>(2, "--max-restarts");
  parts.environment = {{"A.B", {"x y", "--env"}}};
  const JobSettings job = *complete(parts);
  const auto again = parse_job_file(job_file_text(job, WithOrigins::no), job_toml);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  const auto read = complete(*again);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_THAT(job_file_text(*read, WithOrigins::no), Eq(job_file_text(job, WithOrigins::no)));
  EXPECT_THAT(read->command.value, Eq(job.command.value));
}

TEST(JobFile, TellsWhoSaidEachValue) {
  PartialSettings parts;
  parts.command = command({"train.py"});
  parts.slots = said<std::int64_t>(4, "-n");
  EXPECT_THAT(job_file_text(*complete(parts), WithOrigins::yes),
              Eq("preset = \"muster\"                         # default\n"
                 "script = \"train.py\"                       # command line\n"
                 "slots = 4                                 # -n\n"
                 "servers = 0                               # default\n"
                 "restarts = 0                              # default\n"));
}

}  // namespace
}  // namespace muster::launch::testing
