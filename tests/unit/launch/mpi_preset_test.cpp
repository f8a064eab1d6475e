#include "muster/launch/presets/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preset_text.h"

#include "tests/unit/base/mentions.h"

namespace muster::launch {
namespace {

using testing::command;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::lines_of;
using ::testing::Not;
using testing::said;
using testing::Values;

const std::string first_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAfirst";
const std::string second_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAsecond";

PartialSettings one_host(std::int64_t slots = 2) {
  PartialSettings settings{.preset = said(std::string("mpi"), "--preset"),
                           .command = command({"train.py", "--lr", "0.1"})};
  settings.slots = said(slots, "-n");
  return settings;
}

PartialSettings two_hosts(std::int64_t self) {
  PartialSettings settings = one_host();
  settings.host_count = said(std::int64_t{2}, "--nnodes");
  settings.self = said(self, "--node-rank");
  settings.reach = said(Reach::each, "--node-rank");
  settings.scheduler = said(std::string("10.0.0.1:36665"), "--scheduler");
  return settings;
}

struct Ground {
  std::vector<std::string> interfaces = {"eth0", "eth0"};
  std::string run_folder = "/run/job";
  bool is_root = false;
};

Result<LaunchSpec> spec_with(const PartialSettings& settings, const Values& variables,
                             const Ground& ground = {}) {
  const FixedEnvironment environment(variables);
  MUSTER_TRY(const JobSettings job, complete(settings));
  MUSTER_TRY_VOID(mpi_preset.check(job, environment));
  PresetInput input{.job = job, .environment = environment, .run_folder = ground.run_folder};
  if (job.hosts.value.size() > 1) {
    input.addresses = {"10.0.0.1", "10.0.0.2"};
    input.interfaces = ground.interfaces;
    input.host_keys = {first_key, second_key};
    input.first_sources = {"10.0.0.1", "10.1.0.1"};
    input.own_address = "10.0.0.2";
  }
  input.programs = {{"sshd", "/usr/sbin/sshd"}};
  input.user = "ada";
  input.own_program = "/opt/my \"muster\"/muster";
  input.is_root = ground.is_root;
  return mpi_preset.spec(input);
}

std::vector<std::string> lines(const PartialSettings& settings, const Values& variables = {},
                               const Ground& ground = {}) {
  return lines_of(spec_with(settings, variables, ground));
}

std::string file_of(const LaunchSpec& spec, std::string_view name) {
  for (const FileSpec& file : spec.files)
    if (file.path == "/run/job/" + std::string(name)) return file.contents;
  return "no such file";
}

std::string only_error(const PartialSettings& settings, const Values& variables = {},
                       const Ground& ground = {}) {
  return lines(settings, variables, ground).front();
}

// ---- One host ---------------------------------------------------------------------------------------------

TEST(MpiPreset, IsOneMpirunOnOneHost) {
  EXPECT_THAT(
      lines(one_host()),
      ElementsAre(
          "file /run/job/hostfile: localhost slots=2\n", "file /run/job/env_for_user_process: ",
          "mpirun: TMPDIR=/run/job $ mpirun -np 2 -hostfile /run/job/hostfile -tune "
          "/run/job/env_for_user_process -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x "
          "HOROVOD_MPI_THREADS_DISABLE=1 -mca pml ob1 -mca btl ^openib -mca plm_rsh_no_tree_spawn true "
          "python3 train.py --lr 0.1 > mpirun.log"));
}

TEST(MpiPreset, LetsRootBeRoot) {
  EXPECT_THAT(lines(one_host(), {}, {.is_root = true}).back(),
              HasSubstr("mpirun --allow-run-as-root -np 2 "));
}

TEST(MpiPreset, HandsOnExactlyTheVariablesOfThePattern) {
  const Values variables = {{"MA_NUM_GPUS", "2"}, {"S3_SECRET", "a b;c#d"}, {"PATH", "/bin"},
                            {"PATHOLOGY", "x"},   {"VC_WORKER_HOSTS", "a"}, {"SCC_KEY", "k"},
                            {"CREDENTIAL", "c"},  {"MY_SHARED_KEY", "s"},   {"VALUE", "is SHARED_ too"},
                            {"MA_EMPTY", ""},     {"MA_BASE64", "a2V5=="},  {"VC_TASK_INDEX", "0"},
                            {"HOME", "/root"},    {"XMA_", "no"},           {"MA_ODD.NAME", "no"}};
  EXPECT_EQ(
      file_of(*spec_with(one_host(), variables), "env_for_user_process"),
      "-x CREDENTIAL\n-x MA_NUM_GPUS\n-x MY_SHARED_KEY\n-x PATH\n-x PATHOLOGY\n-x S3_SECRET\n-x SCC_KEY\n"
      "-x VALUE\n-x VC_WORKER_HOSTS\n");
}

TEST(MpiPreset, KeepsWhatTheUserSaysOfLibraries) {
  PartialSettings settings = one_host();
  settings.environment["HOROVOD_MPI_THREADS_DISABLE"] = {"0", "--env"};
  settings.environment["MINE"] = {"x", "--env"};
  EXPECT_THAT(
      lines(settings, {{"NCCL_DEBUG", "WARN"}, {"LD_LIBRARY_PATH", "/lib"}, {"MY_MPI_BTL_TCP_IF", "ib0"}})
          .back(),
      AllOf(HasSubstr("mpirun: HOROVOD_MPI_THREADS_DISABLE=0 MINE=x TMPDIR=/run/job "
                      "$ mpirun"),
            HasSubstr("-x MINE "),
            HasSubstr("-x NCCL_DEBUG -x NCCL_SOCKET_IFNAME=ib0 -x NCCL_SOCKET_FAMILY=AF_INET -x "
                      "HOROVOD_MPI_THREADS_DISABLE -x LD_LIBRARY_PATH -mca pml"),
            HasSubstr("-mca btl_tcp_if_include ib0 python3")));
}

// ---- Several hosts ----------------------------------------------------------------------------------------

TEST(MpiPreset, StartsMpirunOnTheFirstOfSeveralHosts) {
  const auto spec = spec_with(two_hosts(0), {{"MA_SECRET", "s"}});
  ASSERT_EQ(spec->processes.size(), 1);
  EXPECT_FALSE(spec->waits_for_release);
  EXPECT_EQ(file_of(*spec, "hostfile"), "10.0.0.1 slots=2\n10.0.0.2 slots=2\n");
  EXPECT_EQ(file_of(*spec, "known_hosts"), "[10.0.0.2]:36666 " + second_key + "\n");
  EXPECT_THAT(file_of(*spec, "ssh_config"),
              AllOf(HasSubstr("StrictHostKeyChecking yes\n"), HasSubstr("IdentityFile /run/job/host_key\n"),
                    HasSubstr("UserKnownHostsFile /run/job/known_hosts\n"), HasSubstr("IdentitiesOnly yes\n"),
                    HasSubstr("BatchMode yes\n")));
  EXPECT_EQ(lines_of(spec).back(),
            "mpirun: TMPDIR=/run/job $ mpirun -np 4 -hostfile /run/job/hostfile "
            "-mca plm_rsh_args -F /run/job/ssh_config -p 36666 "
            "-x MA_SECRET -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x NCCL_SOCKET_IFNAME=eth0 -x "
            "NCCL_SOCKET_FAMILY=AF_INET -x HOROVOD_MPI_THREADS_DISABLE=1 -mca pml ob1 -mca btl ^openib -mca "
            "plm_rsh_no_tree_spawn true -mca btl_tcp_if_include eth0 python3 train.py --lr 0.1 > mpirun.log");
}

TEST(MpiPreset, StartsAnSshdOfItsOwnOnTheOthers) {
  const auto spec = spec_with(two_hosts(1), {{"PATH", "/opt/mpi/bin:/bin"}, {"MY_SSHD_PORT", "2222"}});
  EXPECT_TRUE(spec->waits_for_release);
  // For the first host alone, and for mpirun's daemon alone.
  EXPECT_EQ(file_of(*spec, "authorized_keys"),
            "restrict,from=\"10.0.0.1,10.1.0.1\",command=\"'/opt/my \\\"muster\\\"/muster' mpi-daemon\" " +
                first_key + "\n");
  EXPECT_EQ(file_of(*spec, "sshd_config"),
            "Port 2222\n"
            "ListenAddress 10.0.0.2\n"
            "HostKey /run/job/host_key\n"
            "PidFile none\n"
            "AuthorizedKeysFile /run/job/authorized_keys\n"
            "StrictModes no\n"
            "AllowUsers ada\n"
            "AuthenticationMethods publickey\n"
            "PasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\n"
            "PermitRootLogin prohibit-password\n"
            "UsePAM no\n"
            "X11Forwarding no\n"
            "AllowTcpForwarding no\n"
            "PrintMotd no\n"
            "UseDNS no\n"
            "ClientAliveInterval 5\n"
            "ClientAliveCountMax 3\n"
            "SetEnv TMPDIR=/run/job PATH=\"/opt/mpi/bin:/bin\"\n");
  EXPECT_THAT(lines_of(spec),
              ::testing::Contains("service sshd: $ /usr/sbin/sshd -D -e -f /run/job/sshd_config > sshd.log"));
}

TEST(MpiPreset, HandsNoValueToACommandLine) {
  for (const auto& settings : {one_host(), two_hosts(0)}) {
    const auto spec = spec_with(settings, {{"CRED_TOKEN", "hunter2"}});
    for (const std::string& word : spec->processes.front().arguments)
      EXPECT_THAT(word, Not(HasSubstr("hunter2")));
  }
}

TEST(MpiPreset, LetsMpiFindItsWayWhereInterfacesHaveSeveralNames) {
  EXPECT_THAT(lines(two_hosts(0), {}, {.interfaces = {"eth0", "ens5"}}).back(),
              AllOf(HasSubstr("NCCL_SOCKET_IFNAME=ens5,eth0"), Not(HasSubstr("btl_tcp_if_include"))));
}

TEST(MpiPreset, TakesHostsOfAPlatformByItsVariables) {
  const Values variables = {{"MA_VJ_NAME", "job"},  {"MA_TASK_NAME", "worker"}, {"MA_NUM_HOSTS", "2"},
                            {"VC_TASK_INDEX", "1"}, {"MA_TASK_INDEX", "0"},     {"MA_NUM_GPUS", "4"},
                            {"MY_MPI_SLOTS", "8"}};
  const auto platform = platform_settings(FixedEnvironment(variables));
  ASSERT_TRUE(platform);
  EXPECT_EQ(platform->self->value, 0);
  EXPECT_EQ(platform->slots->value, 8);
  PartialSettings settings = *platform;
  settings.preset = said(std::string("mpi"), "--preset");
  settings.command = command({"./program"});
  EXPECT_THAT(lines(settings, variables).back(), HasSubstr("mpirun -np 16 "));
}

// ---- What cannot be ---------------------------------------------------------------------------------------

TEST(MpiPreset, RefusesWhatItCannotDo) {
  PartialSettings settings = one_host();
  settings.servers = said(std::int64_t{1}, "--servers");
  EXPECT_THAT(only_error(settings), Mentions("error", "--servers 1", "preset"));

  EXPECT_THAT(only_error(one_host(), {{"MY_SSHD_PORT", "70000"}}),
              Mentions("error", "MY_SSHD_PORT=70000", "sshd", "from 1", "to 65535"));
  EXPECT_THAT(only_error(one_host(), {{"MY_MPI_BTL_TCP_IF", "eth0 -x"}}),
              Mentions("error", "MY_MPI_BTL_TCP_IF=eth0", "interfaces", "eth0,bond0"));
  EXPECT_THAT(only_error(two_hosts(0), {}, {.run_folder = "/my files/job"}),
              Mentions("error", "'/my files/job'", "temporary", "TMPDIR"));
  PartialSettings by_ssh = two_hosts(0);
  by_ssh.host_count.reset();
  by_ssh.self.reset();
  by_ssh.hosts = said(std::vector<HostSlots>{{"a", 2}, {"b", 2}}, "--hosts");
  by_ssh.reach = said(Reach::ssh, "--hosts");
  EXPECT_THAT(only_error(by_ssh), Mentions("error", "--hosts", "launcher", "--scheduler"));
}

}  // namespace
}  // namespace muster::launch
