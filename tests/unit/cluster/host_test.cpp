#include "muster/cluster/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/base/mentions.h"

namespace muster::cluster {
namespace {

using ::testing::HasSubstr;

std::string problem(Role role, const std::string& path) {
  const auto prepared = prepare_recovery_path({.role = role, .recovery_path = path});
  return prepared ? "" : prepared.error().message;
}

// No folder can be made there by anybody.
constexpr const char* unwritable = "/proc/self/recovery";

TEST(RecoveryPath, ThatCannotBeWrittenEndsASchedulerButNoWorker) {
  EXPECT_THAT(problem(Role::scheduler, unwritable),
              Mentions("MS_RECOVERY_PATH='/proc/self/recovery'", "cannot"));
  EXPECT_EQ(problem(Role::worker, unwritable), "");
}

TEST(RecoveryPath, ThatIsAFileEndsEveryProcess) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("muster-host-test-" + std::to_string(::getpid()));
  std::ofstream(path) << "a file";
  for (const Role role : {Role::scheduler, Role::worker}) {
    EXPECT_THAT(problem(role, path), Mentions("used", "directory"));
    EXPECT_THAT(problem(role, path + "/below"), Mentions("used", "directory"));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace muster::cluster
