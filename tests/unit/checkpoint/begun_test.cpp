// What a folder says of itself: since when it has been there.
#include "muster/checkpoint/begun.h"

#include <gtest/gtest.h>

#include "muster/checkpoint/run_folders.h"
#include "muster/checkpoint/run_store.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {

using testing::MemoryStorage;
using testing::open_store;
using testing::point;
using testing::run_folder;
using testing::step;

TEST(Begun, IsSaidOfThatCallAndThoseBehindItThroughAnyDeath) {
  MemoryStorage disk;
  {
    RunStore store = open_store(disk);
    EXPECT_FALSE(store.has_begun(1));
    store.note_begun(1);
    EXPECT_TRUE(store.has_begun(1));
  }
  for (const bool power_is_lost : {false, true}) {
    MemoryStorage next = power_is_lost ? disk.after_power_loss(true) : disk.after_kill();
    RunStore store = open_store(next);
    EXPECT_FALSE(store.has_begun(0)) << power_is_lost;
    EXPECT_TRUE(store.has_begun(1)) << power_is_lost;
    EXPECT_TRUE(store.has_begun(2)) << power_is_lost;
    store.note_begun(0);
    EXPECT_TRUE(store.has_begun(0)) << "all have gone back";
  }
}

TEST(Begun, IsSaidByNoFolderThatComesInThePlaceOfALostOne) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  store.note_begun(0);
  ASSERT_TRUE(disk.remove_folder(store.folder()));
  ASSERT_TRUE(store.save(point(step(0, 1), 1)));
  EXPECT_FALSE(store.has_begun(0));
  EXPECT_FALSE(open_store(disk).has_begun(0));
}

// Of what others have seen in it since, who was stopped just there knows nothing.
TEST(Begun, IsNotNotedInAFolderThatHasVanished) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  ASSERT_TRUE(disk.remove_folder(store.folder()));
  ::testing::internal::CaptureStderr();
  store.note_begun(0);
  (void)::testing::internal::GetCapturedStderr();
  EXPECT_FALSE(open_store(disk).has_begun(0));
}

TEST(Begun, IsNotNotedInTheFolderOfASuccessor) {
  MemoryStorage disk;
  RunStore duplicate = open_store(disk);
  RunStore successor = open_store(disk);
  ::testing::internal::CaptureStderr();
  duplicate.note_begun(0);
  (void)::testing::internal::GetCapturedStderr();
  EXPECT_FALSE(open_store(disk).has_begun(0));
}

TEST(Begun, IsNotSaidWhereItIsDamaged) {
  MemoryStorage disk;
  open_store(disk).note_begun(0);
  disk.content(run_folder + "/" + std::string(begun_file))[3] ^= std::byte{1};
  EXPECT_FALSE(open_store(disk).has_begun(0));
}

}  // namespace
}  // namespace muster::checkpoint
