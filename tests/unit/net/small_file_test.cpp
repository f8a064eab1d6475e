#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "muster/net/net.h"

namespace muster::net {
namespace {

using ::testing::HasSubstr;

class SmallFiles : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  SmallFiles() { std::filesystem::create_directories(folder_); }
  ~SmallFiles() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("small-files-{}", ::getpid());
};

TEST_F(SmallFiles, AreReadUpToTheirLimit) {
  EXPECT_EQ(read_small_file(write("a", "1234"), 4)->text, "1234");
  EXPECT_THAT(read_small_file(write("a", "12345"), 4).error().message, HasSubstr("more than the 4 bytes"));
  EXPECT_THAT(read_small_file("/dev/zero", 4).error().message, HasSubstr("'/dev/zero'"));
  EXPECT_THAT(read_small_file(folder_, 4).error().message, HasSubstr("it is a folder"));
  const auto absent = read_small_file(folder_ / "absent", 4);
  EXPECT_EQ(absent.error().code, Code::not_found);
  EXPECT_THAT(absent.error().message, HasSubstr("absent"));
}

TEST_F(SmallFiles, SayWhenEveryUserMayReadThem) {
  EXPECT_TRUE(read_small_file(write("a", "1", 0644), 4)->is_open_to_all);
  EXPECT_FALSE(read_small_file(write("a", "1", 0640), 4)->is_open_to_all);
}

TEST_F(SmallFiles, ComeThroughADescriptorAsOftenAsAsked) {
  const int fd = ::open(write("a", "secret\n").c_str(), O_RDONLY);
  const std::string name = fmt::format("fd:{}", fd);
  EXPECT_EQ(read_secret(name, "a password")->text, "secret");
  EXPECT_EQ(read_secret(name, "a password")->text, "secret");
  EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC) << "a child would inherit it";
  ::close(fd);
  EXPECT_THAT(read_secret(name, "a password").error().message,
              HasSubstr(name + "': this process has no such descriptor open"));
}

TEST_F(SmallFiles, ComeThroughAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], "secret\r\n", 8), 8);
  ::close(ends[1]);
  EXPECT_EQ(read_secret(fmt::format("fd:{}", ends[0]), "a password")->text, "secret");
  ::close(ends[0]);
}

TEST_F(SmallFiles, HoldOneSecretAndNeverShowIt) {
  EXPECT_EQ(read_secret(write("a", " se cret "), "a password")->text, " se cret ");
  for (const std::string wrong : {"", "\n", "secret\nsecret\n", "secret\n\n"}) {
    const auto refused = read_secret(write("a", wrong), "a password");
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message, HasSubstr("a password"));
    EXPECT_THAT(refused.error().message, ::testing::Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace muster::net
