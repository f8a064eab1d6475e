#include "muster/launch/protection.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "preset_text.h"

#include "tests/unit/base/mentions.h"

namespace muster::launch::testing {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const FixedEnvironment nothing(Values{});

JobSettings job_of(const std::string& preset, Reach reach = Reach::here) {
  PartialSettings all;
  all.preset = said(preset, "--preset");
  all.command = command({"a.out"});
  if (reach != Reach::here) all.hosts = said(std::vector<HostSlots>{{"a", 1}, {"b", 1}}, "--hosts");
  all.reach = said(reach, "--hosts");
  return *complete(all);
}

std::string complaint(const JobSettings& job) {
  const auto checked = check_protection(**find_preset(job.preset), job, nothing);
  return checked ? "none" : checked.error().message;
}

std::string token(const JobSettings& job) {
  return *token_to_hand_out(**find_preset(job.preset), job, nothing);
}

TEST(Protection, IsATokenOfItsOwnForEachJobThatOneLauncherStarts) {
  for (const char* preset : {"muster", "mindspore"})
    for (const Reach reach : {Reach::here, Reach::ssh}) {
      EXPECT_THAT(complaint(job_of(preset, reach)), Eq("none"));
      EXPECT_THAT(token(job_of(preset, reach)), SizeIs(64));
      EXPECT_NE(token(job_of(preset, reach)), token(job_of(preset, reach)));
    }
}

TEST(Protection, IsAskedForWhereSeveralLaunchersShareNoSecret) {
  const JobSettings job = job_of("muster", Reach::each);
  EXPECT_THAT(complaint(job), Mentions("several", "launchers"));
  for (const char* way : {"--token-file", "--tls-config", "--open"})
    EXPECT_THAT(complaint(job), HasSubstr(way));
  EXPECT_THAT(complaint(job_of("mpi", Reach::each)), HasSubstr("programs"));
  JobSettings part = job_of("muster");
  part.roles = {{"scheduler"}, "--roles"};
  EXPECT_THAT(complaint(part), HasSubstr("several launchers"));
}

TEST(Protection, IsWhatSomebodyChose) {
  for (const Reach reach : {Reach::here, Reach::each}) {
    JobSettings job = job_of("muster", reach);
    job.token_file = {"/token", "--token-file"};
    EXPECT_THAT(complaint(job), Eq("none"));
    EXPECT_THAT(token(job), IsEmpty());
    job.token_file = {};
    job.tls_config = {"/config.json", "--tls-config"};
    EXPECT_THAT(complaint(job), Eq("none"));
    EXPECT_THAT(token(job), IsEmpty());
    job.tls_config = {};
    job.environment["MUSTER_TLS_CONFIG"] = {"/config.json", "--env"};
    EXPECT_THAT(complaint(job), Eq("none"));
    EXPECT_THAT(token(job), IsEmpty());
  }
}

// The launchers themselves meet, and --env is for the processes.
TEST(Protection, OfLaunchersThatMeetIsNotInTheVariablesOfProcesses) {
  JobSettings job = job_of("mpi", Reach::each);
  job.environment["MUSTER_TOKEN_FILE"] = {"/token", "--env"};
  EXPECT_THAT(complaint(job), HasSubstr("several launchers"));
}

TEST(Protection, IsNoneInAnOpenJob) {
  JobSettings job = job_of("muster", Reach::each);
  job.is_open = {true, "--open"};
  EXPECT_THAT(complaint(job), Eq("none"));
  EXPECT_THAT(token(job), IsEmpty());
  job.token_file = {"/token", "MUSTER_TOKEN_FILE"};
  EXPECT_THAT(complaint(job),
              Eq("--open lets unauthorized peers in, and MUSTER_TOKEN_FILE keeps them out: leave one out"));
}

TEST(Protection, IsTheMatterOfOtherFrameworksAmongTheirProcesses) {
  for (const char* preset : {"pytorch", "tensorflow", "ascend"}) {
    EXPECT_THAT(complaint(job_of(preset, Reach::each)), Eq("none"));
    EXPECT_THAT(token(job_of(preset)), IsEmpty());
  }
  EXPECT_THAT(complaint(job_of("mpi")), Eq("none")) << "one host has no sshd";
}

TEST(Protection, TravelsOverSshFromAFileThatIsHereAlone) {
  const std::string path = ::testing::TempDir() + "token-" + std::to_string(::getpid());
  std::ofstream(path) << "a token that nobody guesses\n";
  JobSettings job = job_of("muster", Reach::ssh);
  job.token_file = {path, "--token-file"};
  EXPECT_THAT(token(job), Eq("a token that nobody guesses"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace muster::launch::testing
