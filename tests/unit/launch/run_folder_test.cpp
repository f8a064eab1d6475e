#include "muster/launch/run_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>

namespace muster::launch {
namespace {

using testing::AllOf;
using testing::Eq;
using testing::HasSubstr;
using testing::StartsWith;

using Variables = std::map<std::string, std::string, std::less<>>;

unsigned mode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777u : 0;
}

TEST(RunFolder, HasANameOfItsOwnWhereTmpdirSays) {
  const FixedEnvironment environment(Variables{{"TMPDIR", "/scratch/"}});
  const std::string folder = new_run_folder(environment);
  EXPECT_THAT(folder, StartsWith("/scratch/muster-"));
  EXPECT_NE(folder, new_run_folder(environment));
  EXPECT_THAT(new_run_folder(FixedEnvironment(Variables{})), StartsWith("/tmp/muster-"));
}

TEST(RunFolder, AndItsFilesAreForThisUserAloneAndGoTogether) {
  const std::string folder = ::testing::TempDir() + "run-folder-" + std::to_string(::getpid());
  ASSERT_TRUE(make_run_folder(folder));
  EXPECT_THAT(mode_of(folder), Eq(0700u));
  ASSERT_TRUE(make_files(folder, {{.path = folder + "/keys/id", .contents = "secret"}}));
  EXPECT_THAT(mode_of(folder + "/keys/id"), Eq(0600u));

  const auto again = make_run_folder(folder);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, AllOf(HasSubstr(folder), HasSubstr("File exists")));
  const auto replaced = make_files(folder, {{.path = folder + "/keys/id", .contents = "other"}});
  ASSERT_FALSE(replaced);
  EXPECT_THAT(replaced.error().message, HasSubstr("File exists"));

  remove_run_folder(folder);
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(RunFolder, TakesNoFileThatWouldBeLeftBehind) {
  for (const std::string path : {"/elsewhere/x", "/run/a/../../b", "/run/a", ""}) {
    const auto made = make_files("/run/a", {{.path = path, .contents = "secret"}});
    ASSERT_FALSE(made) << path;
    EXPECT_THAT(made.error().message, HasSubstr("would not lie in the folder '/run/a'"));
  }
}

}  // namespace
}  // namespace muster::launch
