#include "muster/launch/run_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "tests/unit/base/mentions.h"

namespace muster::launch {
namespace {
namespace run_folder_test {

using ::testing::AllOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

TEST(RunFolder, HasLinksToSecretsThatAreInMemoryAlone) {
  const std::string folder = ::testing::TempDir() + "run-folder-secret-" + std::to_string(::getpid());
  ASSERT_TRUE(make_run_folder(folder));
  const std::string path = folder + "/token";
  {
    const auto held = make_files(folder, {{.path = path, .contents = "sesame", .is_secret = true}});
    ASSERT_TRUE(held) << held.error().message;
    EXPECT_TRUE(std::filesystem::is_symlink(path));
    EXPECT_THAT(mode_of(path), Eq(0600u));
    EXPECT_THAT(net::read_secret(path, "a token")->text, Eq("sesame"));
    EXPECT_THAT(net::read_secret(path, "a token")->text, Eq("sesame")) << "as often as one likes";
  }
  EXPECT_FALSE(std::filesystem::exists(path)) << "its memory is gone";
  remove_run_folder(folder);
  EXPECT_FALSE(std::filesystem::is_symlink(path));
}

TEST(RunFolder, TakesNoFileThatWouldBeLeftBehind) {
  for (const std::string path : {"/elsewhere/x", "/run/a/../../b", "/run/a", ""}) {
    const auto made = make_files("/run/a", {{.path = path, .contents = "secret"}});
    ASSERT_FALSE(made) << path;
    EXPECT_THAT(made.error().message, Mentions("folder", "'/run/a'"));
  }
}

}  // namespace run_folder_test
}  // namespace
}  // namespace muster::launch
