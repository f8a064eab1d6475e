#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "muster/telemetry/crc32c.h"
#include "muster/telemetry/telemetry.h"

namespace muster::telemetry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class Folder {
 public:
  Folder() {
    std::string made = testing::TempDir() + "telemetryXXXXXX";
    path_ = ::mkdtemp(made.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Crc32c, IsThatOfTheStandard) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32)), 0x8A9136AAU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Records, EndWhereOneIsCutOrDamaged) {
  Bytes file;
  put_record(bytes_of("first"), file);
  const std::size_t first = file.size();
  put_record(bytes_of("second"), file);
  EXPECT_EQ(records_in(file).end, file.size());
  EXPECT_EQ(records_in(file).contents.size(), 2U);
  for (std::size_t size = first; size < file.size(); ++size)
    EXPECT_EQ(records_in(std::span(file).first(size)).end, first);
  for (std::size_t at = first; at < file.size(); ++at) {
    Bytes damaged = file;
    damaged[at] ^= std::byte{1};
    EXPECT_EQ(records_in(damaged).end, first) << "byte " << at;
  }
}

TEST(EventFile, GoesOnBehindTheLastWholeRecordOfTheNewestFile) {
  const Folder folder;
  std::string path;
  {
    auto file = EventFile::create(folder.path(), "0");
    ASSERT_TRUE(file) << file.error().message;
    file->add("loss", 3, scalar_summary("loss", 0.5));
    file->add("loss", 4, scalar_summary("loss", 0.25));
    file->add("rate", 4, scalar_summary("rate", 0.1));
    ASSERT_TRUE(file->flush());
    path = file->path();
  }
  EXPECT_THAT(path, HasSubstr("/events.out.tfevents."));
  const auto whole = std::filesystem::file_size(path);
  std::ofstream(path, std::ios::app | std::ios::binary) << "torn";
  auto file = EventFile::go_on(folder.path(), "0");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->path(), path);
  EXPECT_EQ(std::filesystem::file_size(path), whole);
  EXPECT_THAT(file->last_steps(), ElementsAre(Pair("loss", 4), Pair("rate", 4)));
  auto other = EventFile::go_on(folder.path(), "1");
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_NE(other->path(), path);
}

TEST(EventFile, TwoOfOneProcessAndSecondAreTwoFiles) {
  const Folder folder;
  const auto first = EventFile::create(folder.path(), "0");
  const auto second = EventFile::create(folder.path(), "0");
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->path(), second->path());
}

TEST(EventFile, NamesTheFolderThatCannotBeMade) {
  const auto file = EventFile::create("/proc/none", "0");
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("/proc/none"));
}

TEST(AppendFile, CutsOffWhatADeadProcessLeftUnfinished) {
  const Folder folder;
  const std::string path = folder.path() + "/below/lines";
  const auto lines = [](std::span<const std::byte> bytes) { return bytes.size() / 4 * 4; };
  {
    auto file = AppendFile::open_behind(path, lines);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->append(std::string_view("one\ntw")));
  }
  auto file = AppendFile::open_behind(path, lines);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(file->append(std::string_view("two\n")));
  std::ifstream written(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(written), {}), "one\ntwo\n");
  EXPECT_FALSE(AppendFile().append(std::string_view("lost")));
}

TEST(AppendFile, WritesToPipesAndDevicesWithoutReadingThem) {
  const Folder folder;
  const std::string path = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::ifstream reader;
  std::thread opens([&] { reader.open(path); });  // waits for who writes
  const auto none = [](std::span<const std::byte>) {
    ADD_FAILURE() << "a pipe has no contents";
    return std::size_t{0};
  };
  {
    auto file = AppendFile::open_behind(path, none);
    opens.join();
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->append(std::string_view("one\n")));
  }
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "one\n");
  auto full = AppendFile::open_behind("/dev/full", none);
  ASSERT_TRUE(full) << full.error().message;
  const auto written = full->append(std::string_view("one\n"));
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("/dev/full"));
}

TEST(Picture, ThatDoesNotFitIsRefused) {
  const std::vector<std::uint8_t> pixels(12);
  EXPECT_TRUE(picture_summary("p", {.height = 2, .width = 2, .channels = 3, .pixels = pixels}));
  EXPECT_FALSE(picture_summary("p", {.height = 2, .width = 2, .channels = 1, .pixels = pixels}));
  EXPECT_FALSE(picture_summary("p", {.height = 2, .width = 3, .channels = 2, .pixels = pixels}));
  EXPECT_FALSE(picture_summary("p", {.height = 0, .width = 2, .channels = 3, .pixels = {}}));
}

}  // namespace
}  // namespace muster::telemetry
