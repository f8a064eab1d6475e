#include "muster/data/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "digits.h"
#include "muster/data/synthetic.h"

namespace muster::data {
namespace {
namespace token_file_test {

using namespace muster::data::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A file of its own, gone with the test.
class TokenFile : public ::testing::Test {
 protected:
  TokenFile() { ::close(::mkstemp(path_.data())); }
  ~TokenFile() override { ::unlink(path_.c_str()); }

  template <class T>
  void write(const std::vector<T>& ids) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(ids.data()),
               static_cast<std::streamsize>(ids.size() * sizeof(T)));
  }
  std::string error_of(const TokenFileOptions& options) const {
    const auto status = token_file(options).status();
    return status ? "no error" : status.error().message;
  }

  std::string path_ = "/tmp/muster-tokens-XXXXXX";
};

template <class T>
std::vector<T> counted(std::size_t count) {
  std::vector<T> ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<T>(i * 7);
  return ids;
}

std::vector<std::int32_t> ids_of(const Tensor& column) {
  return {column.span<std::int32_t>().begin(), column.span<std::int32_t>().end()};
}

template <class T>
void expect_windows(const std::string& path, DType dtype) {
  const auto items =
      items_of(token_file({.file = path, .window = 3, .dtype = dtype, .rows = {.shuffle = false}}));
  ASSERT_EQ(items.size(), 3U);  // of eleven tokens: the last one is no one's target
  EXPECT_THAT(ids_of(items[0][0]), ElementsAre(0, 7, 14));
  EXPECT_THAT(ids_of(items[0][1]), ElementsAre(7, 14, 21));
  EXPECT_THAT(ids_of(items[2][0]), ElementsAre(42, 49, 56));
  EXPECT_THAT(ids_of(items[2][1]), ElementsAre(49, 56, 63));
}

TEST_F(TokenFile, YieldsWindowsAndTheTokensBehindThem) {
  write(counted<std::uint16_t>(11));
  expect_windows<std::uint16_t>(path_, DType::uint16);
  write(counted<std::uint8_t>(11));
  expect_windows<std::uint8_t>(path_, DType::uint8);
  write(counted<std::uint32_t>(11));
  expect_windows<std::uint32_t>(path_, DType::uint32);
  write(counted<std::int32_t>(11));
  expect_windows<std::int32_t>(path_, DType::int32);
}

TEST_F(TokenFile, SaysWhatIsWrong) {
  write(counted<std::uint8_t>(7));
  EXPECT_THAT(error_of({.file = path_, .window = 3}), HasSubstr("7 bytes, no whole number of uint16 ids"));
  EXPECT_THAT(error_of({.file = path_, .window = 7, .dtype = DType::uint8}),
              HasSubstr("has 7 tokens; a window of 7 and the one behind it take 8"));
  EXPECT_THAT(error_of({.file = path_, .window = 0, .dtype = DType::uint8}), HasSubstr("window is 0"));
  EXPECT_THAT(error_of({.file = path_, .window = 3, .dtype = DType::float32}), HasSubstr("dtype is float32"));
  EXPECT_THAT(error_of({.file = "/nowhere/tokens.bin", .window = 3}),
              HasSubstr("cannot read '/nowhere/tokens.bin'"));
  EXPECT_THAT(error_of({.file = "/tmp", .window = 3}), HasSubstr("'/tmp' is no file"));
}

TEST_F(TokenFile, AFileThatBecameShorterIsNamed) {
  write(counted<std::uint8_t>(100));
  const Dataset dataset =
      token_file({.file = path_, .window = 9, .dtype = DType::uint8, .rows = {.shuffle = false}});
  ASSERT_EQ(::truncate(path_.c_str(), 50), 0);
  auto iterator = dataset.iterate({});
  std::string said = "no error";
  for (int row = 0; row < 11 && said == "no error"; ++row)
    if (const auto item = iterator->next(); !item) said = item.error().message;
  EXPECT_THAT(said, HasSubstr("ends at byte 50: it had 100 bytes"));
}

TEST_F(TokenFile, AnIdBeyondInt32IsNamed) {
  auto ids = counted<std::uint32_t>(11);
  ids[4] = 1U << 31;
  write(ids);
  auto iterator = token_file({.file = path_, .window = 5, .dtype = DType::uint32}).iterate({});
  std::string said = "no error";
  for (int row = 0; row < 2 && said == "no error"; ++row)
    if (const auto item = iterator->next(); !item) said = item.error().message;
  EXPECT_THAT(said, HasSubstr("token 4 is -2147483648 as int32"));
}

TEST_F(TokenFile, ShardsShareOutTheShuffledWindows) {
  write(counted<std::uint8_t>(31));
  std::vector<std::int32_t> seen;
  for (std::int64_t shard = 0; shard < 2; ++shard)
    for (const auto& item : items_of(token_file({.file = path_,
                            .window = 3,
                            .dtype = DType::uint8,
                            .rows = {.num_shards = 2, .shard_id = shard}})))
      seen.push_back(ids_of(item[0])[0]);
  EXPECT_FALSE(std::is_sorted(seen.begin(), seen.end()));
  std::sort(seen.begin(), seen.end());
  EXPECT_THAT(seen, ElementsAre(0, 21, 42, 63, 84, 105, 126, 147, 168, 189));
}

TEST(TinyText, IsEveryTextOfTheFolderOnce) {
  MemoryFiles files;
  const auto put = [&](const std::string& path, std::string_view text) {
    ASSERT_TRUE(files.write(path, std::as_bytes(std::span(text))));
  };
  put("/texts/B", "second ");
  put("/texts/A", "first ");
  put("/texts/C", "second ");  // a link, mostly
  EXPECT_EQ(write_tiny_text({.file = "/out.txt", .folder = "/texts"}, files).value(), 13U);
  const auto written = files.read("/out.txt").value();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(written.data()), written.size()), "first second ");
  EXPECT_TRUE(write_tiny_text({.file = "/out.txt", .folder = "/texts"}, files));
  put("/out.txt", "mine");
  EXPECT_THAT(write_tiny_text({.file = "/out.txt", .folder = "/texts"}, files).error().message,
              HasSubstr("'/out.txt' is there and holds something else"));
  EXPECT_THAT(write_tiny_text({.file = "/new.txt", .folder = "/nowhere"}, files).error().message,
              HasSubstr("--from"));
  put("/texts/D", "picture\xFF");
  EXPECT_THAT(write_tiny_text({.file = "/new.txt", .folder = "/texts"}, files).error().message,
              HasSubstr("'/texts/D' is no text: byte 7"));
}

}  // namespace token_file_test
}  // namespace
}  // namespace muster::data
