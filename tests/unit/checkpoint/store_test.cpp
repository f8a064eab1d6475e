#include "muster/checkpoint/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/unit/checkpoint/memory_storage.h"

namespace muster::checkpoint {
namespace {

using ::testing::HasSubstr;

TEST(CheckpointStore, KeepsTheNewestFiles) {
  testing::MemoryStorage files;
  Retention retention(2);
  for (const char* path : {"/c/a.ckpt", "/c/b.ckpt", "/c/c.ckpt"}) {
    ASSERT_TRUE(save(path, {}, files));
    ASSERT_TRUE(retention.add(path, files));
  }
  EXPECT_EQ(files.list("/c").value(), (std::vector<std::string>{"b.ckpt", "c.ckpt"}));
}

TEST(CheckpointStore, CountsAFileThatIsWrittenAgainOnceAndAsTheNewest) {
  testing::MemoryStorage files;
  Retention retention(2);
  for (const char* path : {"/c/a.ckpt", "/c/b.ckpt", "/c/a.ckpt", "/c/c.ckpt"}) {
    ASSERT_TRUE(save(path, {}, files));
    ASSERT_TRUE(retention.add(path, files));
  }
  EXPECT_EQ(files.list("/c").value(), (std::vector<std::string>{"a.ckpt", "c.ckpt"}));
}

std::string text_of(const testing::MemoryStorage& files, const std::string& path) {
  const auto bytes = files.read(path).value();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const std::array one_entry{Entry{"fc.weight", Tensor::from<float>(std::array{1.0F, -2.0F}, {2})}};

TEST(CheckpointStore, WritesTheFormatThatTheNameSaysAndReadsEitherUnderAnyName) {
  testing::MemoryStorage files;
  ASSERT_TRUE(save("/c/a.safetensors", one_entry, files));
  ASSERT_TRUE(save("/c/a.ckpt", one_entry, files));
  EXPECT_EQ(text_of(files, "/c/a.safetensors").substr(8, 13), R"({"fc.weight":)");
  EXPECT_EQ(text_of(files, "/c/a.ckpt").front(), '\n');
  // Renamed files, and those that older versions wrote under any name.
  ASSERT_TRUE(files.rename("/c/a.safetensors", "/c/b.ckpt"));
  ASSERT_TRUE(files.rename("/c/a.ckpt", "/c/b.safetensors"));
  for (const char* path : {"/c/b.ckpt", "/c/b.safetensors"}) {
    const auto loaded = load(path, files);
    ASSERT_TRUE(loaded) << loaded.error().message;
    ASSERT_EQ(loaded->size(), 1U);
    EXPECT_EQ(loaded->front().value.span<float>()[1], -2.0F);
  }
}

TEST(CheckpointStore, KeepsTheLayoutOfPiecesInEitherFormat) {
  testing::MemoryStorage files;
  for (const char* path : {"/c/a.safetensors", "/c/a.ckpt"}) {
    ASSERT_TRUE(save(path, one_entry, files, R"({"rank": 1})"));
    const auto stored = open_stored(path, files);
    ASSERT_TRUE(stored) << stored.error().message;
    EXPECT_EQ(stored->metadata.at("muster.layout"), R"({"rank": 1})");
    ASSERT_EQ(stored->tensors.size(), 1U);
    EXPECT_EQ(load(path, files).value().size(), 1U);
  }
  ASSERT_TRUE(save("/c/b.ckpt", one_entry, files));
  EXPECT_TRUE(open_stored("/c/b.ckpt", files)->metadata.empty());
}

TEST(CheckpointStore, PassesOverAChecksumBehindTheEntriesAndNothingElse) {
  testing::MemoryStorage files;
  ASSERT_TRUE(save("/c/a.ckpt", one_entry, files));
  const std::string plain = text_of(files, "/c/a.ckpt");
  const auto loads = [&](const std::string& text) {
    EXPECT_TRUE(files.write("/c/b.ckpt", std::as_bytes(std::span(text))));
    return load("/c/b.ckpt", files).has_value();
  };
  EXPECT_TRUE(loads(plain + "crc_num" + std::string(10, '\1')));
  EXPECT_FALSE(loads(plain + "crc_num" + std::string(9, '\1')));
  EXPECT_FALSE(loads(plain + "crc_sum" + std::string(10, '\1')));
}

TEST(CheckpointStore, SaysWhatAFileIsThatItCannotRead) {
  testing::MemoryStorage files;
  const auto error_of = [&](const std::string& path, std::string_view text) {
    EXPECT_TRUE(files.write(path, std::as_bytes(std::span(text))));
    const auto loaded = load(path, files);
    EXPECT_FALSE(loaded);
    return loaded ? "" : loaded.error().message;
  };
  EXPECT_THAT(error_of("/c/model.pt", "PK\x03\x04 and more"), HasSubstr("torch.save"));
  EXPECT_THAT(error_of("/c/cut.safetensors", "\x40"), HasSubstr("safetensors"));
  EXPECT_THAT(error_of("/c/cut.ckpt", "\x40"), HasSubstr("/c/cut.ckpt"));
  for (const char* path : {"/c/none.ckpt", "/c/none.safetensors"}) {
    const auto loaded = load(path, files);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, Code::not_found);
    EXPECT_THAT(loaded.error().message, HasSubstr(path));
  }
}

TEST(CheckpointStore, BearsThatSomebodyElseRemovedAFile) {
  testing::MemoryStorage files;
  Retention retention(1);
  ASSERT_TRUE(retention.add("/c/gone.ckpt", files));
  EXPECT_TRUE(retention.add("/c/new.ckpt", files));
}

TEST(CheckpointStore, ChoosesAPrefixThatNoEarlierTrainingUsed) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(free_number("CKP", Names{}), 0);
  EXPECT_EQ(free_number("CKP", Names{"CKP2-1_5.ckpt", "CKP-1_5.txt", "CKP_x-1_1.ckpt"}), 0);
  EXPECT_EQ(free_number("CKP", Names{"CKP-1_5.ckpt"}), 1);
  EXPECT_EQ(free_number("CKP", Names{"CKP-1_5.safetensors"}), 1);
  EXPECT_EQ(free_number("CKP", Names{"CKP_3-1_5.ckpt"}), 4) << "the first one may be gone";
  EXPECT_EQ(free_number("CKP", Names{"CKP_7.ckpt", "CKP_-1_5.ckpt", "other-1_5.ckpt"}), 0);
  EXPECT_EQ(free_number("CKP", Names{"CKP-1_5.ckpt", "CKP_9-2_1.ckpt", "CKP_10-2_1.ckpt"}), 11);
  EXPECT_EQ(numbered_prefix("CKP", 0), "CKP");
  EXPECT_EQ(numbered_prefix("CKP", 11), "CKP_11");
}

}  // namespace
}  // namespace muster::checkpoint
