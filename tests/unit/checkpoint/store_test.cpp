#include "muster/checkpoint/store.h"

#include <gtest/gtest.h>

#include "tests/unit/checkpoint/memory_storage.h"

namespace muster::checkpoint {
namespace {

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

TEST(CheckpointStore, BearsThatSomebodyElseRemovedAFile) {
  testing::MemoryStorage files;
  Retention retention(1);
  ASSERT_TRUE(retention.add("/c/gone.ckpt", files));
  EXPECT_TRUE(retention.add("/c/new.ckpt", files));
}

TEST(CheckpointStore, ChoosesAPrefixThatNoEarlierTrainingUsed) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(free_prefix("CKP", Names{}), "CKP");
  EXPECT_EQ(free_prefix("CKP", Names{"CKP2-1_5.ckpt", "CKP-1_5.txt", "CKP_x-1_1.ckpt"}), "CKP");
  EXPECT_EQ(free_prefix("CKP", Names{"CKP-1_5.ckpt"}), "CKP_1");
  EXPECT_EQ(free_prefix("CKP", Names{"CKP_3-1_5.ckpt"}), "CKP_4") << "the first one may be gone";
  EXPECT_EQ(free_prefix("CKP", Names{"CKP_7.ckpt", "CKP_-1_5.ckpt", "other-1_5.ckpt"}), "CKP");
  EXPECT_EQ(free_prefix("CKP", Names{"CKP-1_5.ckpt", "CKP_9-2_1.ckpt", "CKP_10-2_1.ckpt"}), "CKP_11");
}

TEST(CheckpointStore, SaysWhichFileIsMissing) {
  const auto loaded = load("/c/none.ckpt", MemoryFiles());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::not_found);
  EXPECT_NE(loaded.error().message.find("/c/none.ckpt"), std::string::npos);
}

}  // namespace
}  // namespace muster::checkpoint
