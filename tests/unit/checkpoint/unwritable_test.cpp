// A path that cannot be written at this moment does not end a job: others can serve its state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/checkpoint/run_store.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {

using testing::Fault;
using ::testing::HasSubstr;
using testing::MemoryStorage;
using testing::open_store;
using testing::options_in;
using testing::point;
using testing::refusal;
using testing::step;

constexpr Fault read_only{.at = 1, .kind = Fault::Kind::forever, .error_number = EROFS};

RunStore open_quietly(MemoryStorage& disk) {
  ::testing::internal::CaptureStderr();
  RunStore store = open_store(disk);
  (void)::testing::internal::GetCapturedStderr();
  return store;
}

TEST(UnwritablePath, IsOpenedAllTheSameAndSaidLoudly) {
  MemoryStorage disk;
  disk.set_fault(read_only);
  ::testing::internal::CaptureStderr();
  RunStore store = open_store(disk);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              Mentions("'/recovery/job-0123456789abcdef/worker_1'", "'/recovery'", "tries"));
  EXPECT_THAT(store.problem(), Mentions("'/recovery'", "system"));
  EXPECT_TRUE(store.points().empty());
  EXPECT_EQ(store.unread(), "") << "nothing was there";
  const auto saved = store.save(point(step(0, 1), 1));
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message, HasSubstr("Read-only file system"));
  EXPECT_FALSE(store.finish_call({.call = 0, .kind = "train"}));
  EXPECT_FALSE(store.set_done());
}

TEST(UnwritablePath, IsUsedAsSoonAsItCanBeWritten) {
  MemoryStorage disk;
  disk.set_fault(read_only);
  RunStore store = open_quietly(disk);
  EXPECT_FALSE(store.save(point(step(0, 1), 1)));
  disk.set_fault({});
  EXPECT_TRUE(store.save(point(step(0, 2), 2)));
  EXPECT_EQ(store.problem(), "");
  EXPECT_EQ(open_store(disk).points(), std::vector{step(0, 2)});
}

TEST(UnwritablePath, IsReadFromAllTheSame) {
  MemoryStorage disk;
  {
    RunStore store = open_store(disk);
    ASSERT_TRUE(store.save(point(step(1, 5), 5)));
    ASSERT_TRUE(store.finish_call({.call = 0, .kind = "train", .result = "{}"}));
  }
  MemoryStorage next = disk.after_kill();
  next.set_fault(read_only);
  RunStore store = open_quietly(next);
  EXPECT_EQ(store.points(), std::vector{step(1, 5)});
  testing::expect_equal(store.load(step(1, 5)).value(), point(step(1, 5), 5));
  EXPECT_EQ(store.finished(0)->result, "{}");
  EXPECT_EQ(store.finished_calls(), 1u);
  EXPECT_EQ(store.unread(), "");
}

TEST(UnwritablePath, WhoseShareIsAwayIsNotKnownToBeEmpty) {
  MemoryStorage disk;
  disk.set_fault({.at = 1, .kind = Fault::Kind::forever, .error_number = ENOENT});
  EXPECT_NE(open_quietly(disk).unread(), "");
}

TEST(UnwritablePath, SaysWhatCannotBeReadOfIt) {
  MemoryStorage disk;
  ASSERT_TRUE(open_store(disk).save(point(step(0, 5), 5)));
  disk.content(testing::run_folder + "/call_0.step_5/manifest.json").clear();
  disk.set_fault(read_only);
  RunStore store = open_quietly(disk);
  EXPECT_TRUE(store.points().empty());
  EXPECT_THAT(store.unread(), HasSubstr("manifest"));
}

TEST(UnwritablePath, IsLookedAtAgain) {
  MemoryStorage disk;
  RunStore duplicate = open_store(disk);
  ASSERT_TRUE(duplicate.save(point(step(0, 1), 1)));
  disk.set_fault(read_only);
  RunStore successor = open_quietly(disk);
  disk.set_fault({});
  ASSERT_TRUE(duplicate.save(point(step(0, 2), 2))) << "nobody else has taken the folder";
  EXPECT_EQ(successor.points(), std::vector{step(0, 1)});
  successor.look_again();
  EXPECT_EQ(successor.points(), (std::vector{step(0, 1), step(0, 2)}));
  EXPECT_EQ(successor.problem(), "");
  EXPECT_FALSE(duplicate.save(point(step(0, 3), 3)));
}

TEST(UnwritablePath, WhoLooksAgainSeesThatTheFolderHasVanished) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  store.note_begun(0);
  ASSERT_TRUE(store.save(point(step(0, 1), 1)));
  ASSERT_TRUE(disk.remove_folder(store.folder()));
  store.look_again();
  EXPECT_TRUE(store.points().empty());
  EXPECT_FALSE(store.has_begun(0));
  EXPECT_EQ(store.problem(), "");
}

TEST(UnwritablePath, IsLeftToWhoHasTakenItMeanwhile) {
  MemoryStorage disk;
  RunStore first = open_store(disk);
  disk.set_fault(read_only);
  RunStore duplicate = open_quietly(disk);
  disk.set_fault({});
  RunStore successor = open_store(disk);
  duplicate.look_again();
  duplicate.look_again();
  EXPECT_NE(duplicate.problem(), "");
  EXPECT_TRUE(successor.save(point(step(0, 1), 1)));
}

TEST(UnwritablePath, StaysRefusedWhereAnotherJobIsNotFinished) {
  MemoryStorage disk;
  RunOptions other = options_in(disk);
  other.job = "ffffffffffffffff";
  ASSERT_TRUE(open_store(other).save(point(step(0, 1), 1)));
  disk.set_fault(read_only);
  RunStore store = open_quietly(disk);
  disk.set_fault({});
  EXPECT_THAT(store.save(point(step(0, 1), 1)).error().message, HasSubstr("is not finished"));
}

TEST(UnwritablePath, IsAnErrorWhereItCanBeNoFolder) {
  MemoryStorage disk;
  ASSERT_TRUE(disk.write("/recovery", {}));
  EXPECT_THAT(refusal(options_in(disk)), Mentions("MS_RECOVERY_PATH='/recovery'", "used"));
  RunOptions below = options_in(disk);
  below.folder = "/recovery/here";
  EXPECT_THAT(refusal(below), Mentions("MS_RECOVERY_PATH='/recovery/here'", "used", "'/recovery'"));
}

}  // namespace
}  // namespace muster::checkpoint
