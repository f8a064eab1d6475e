// Measuring calls between processes of this machine, once.
#include "muster/launch/call_times.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <span>
#include <string>

#include "muster/net/net.h"

namespace muster::launch {
namespace {

class CallTimesFile : public ::testing::Test {
 protected:
  ~CallTimesFile() override { std::filesystem::remove_all(folder_); }

  Result<CallTimes> read(const std::string& path) const {
    MUSTER_TRY(const std::vector<std::byte> bytes, real_files().read(path));
    return call_times_from({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  void write(const std::string& path, const std::string& text) const {
    ASSERT_TRUE(real_files().write(path, std::as_bytes(std::span(text))));
  }

  static std::string new_folder() {
    std::string name = "/tmp/call_times_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return name;
  }

  const std::string folder_ = new_folder();
  FixedEnvironment environment_{{{"XDG_CACHE_HOME", folder_}}};
};

TEST_F(CallTimesFile, HasEveryKindOfCallInEverySizeOfGroup) {
  const auto path = prepare_call_times(environment_, 4, false);
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_TRUE(path->starts_with(folder_)) << *path;
  const auto times = read(*path);
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(times->workers, 4u);
  std::set<std::pair<CallKind, std::uint32_t>> measured;
  for (const CallTimes::Entry& entry : times->entries) {
    measured.emplace(entry.kind, entry.ranks);
    EXPECT_GT(entry.time, Duration(0));
  }
  EXPECT_EQ(measured.size(), 8u);  // four kinds, of two and of four ranks
}

TEST_F(CallTimesFile, IsMeasuredAnewOnlyWhereThatIsAskedForOrItCannotBeRead) {
  const std::string path = call_times_file(environment_, net::host_name(), 2).value();
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  const CallTimes old{.workers = 2, .measured_at_s = 1, .entries = {}};
  write(path, to_text(old));
  ASSERT_TRUE(prepare_call_times(environment_, 2, false));
  EXPECT_EQ(read(path).value(), old);
  ASSERT_TRUE(prepare_call_times(environment_, 2, true));
  EXPECT_NE(read(path).value(), old);
  write(path, "something else");
  ASSERT_TRUE(prepare_call_times(environment_, 2, false));
  EXPECT_TRUE(read(path));
}

TEST(CallTimesOfNobody, AreErrorsWithWhatWouldHelp) {
  const FixedEnvironment nothing(std::map<std::string, std::string, std::less<>>{});
  const auto nowhere = prepare_call_times(nothing, 2, false);
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find("XDG_CACHE_HOME"), std::string::npos) << nowhere.error().message;
  const auto many = prepare_call_times(nothing, 65, false);
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().message.find("64"), std::string::npos) << many.error().message;
}

}  // namespace
}  // namespace muster::launch
