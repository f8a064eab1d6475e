#include "muster/base/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace muster {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

// Both implementations keep one contract.
class FilesContract : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) return;
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-files-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override {
    if (GetParam()) std::filesystem::remove_all(root_);
  }
  Files& files() { return GetParam() ? real_files() : static_cast<Files&>(memory_); }
  std::string path(const std::string& name) const { return root_ + "/" + name; }

  std::string root_ = "/root";
  MemoryFiles memory_;
};

TEST_P(FilesContract, ReadsBackWhatWasWritten) {
  ASSERT_TRUE(files().write(path("a"), bytes_of("first")));
  ASSERT_TRUE(files().write(path("a"), bytes_of("second, longer")));
  EXPECT_EQ(files().read(path("a")).value(), bytes_of("second, longer"));
}

TEST_P(FilesContract, NamesAFileThatIsNotThere) {
  const auto result = files().read(path("missing"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::not_found);
  EXPECT_NE(result.error().message.find(path("missing")), std::string::npos) << result.error().message;
}

TEST_P(FilesContract, ListsNamesInOrderAndLeavesNoTemporaryFile) {
  ASSERT_TRUE(files().write(path("b"), bytes_of("2")));
  ASSERT_TRUE(files().write(path("a"), bytes_of("1")));
  EXPECT_EQ(files().list(root_).value(), (std::vector<std::string>{"a", "b"}));
}

INSTANTIATE_TEST_SUITE_P(Implementations, FilesContract, ::testing::Bool(),
                         [](const auto& implementation) { return implementation.param ? "Real" : "Memory"; });

}  // namespace
}  // namespace muster
