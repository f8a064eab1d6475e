// Jobs on one path: none is removed that is not done, and none begins where another one is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/checkpoint/run_folders.h"
#include "muster/checkpoint/run_store.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {

using ::testing::ElementsAre;
using testing::Fault;
using ::testing::HasSubstr;
using testing::MemoryStorage;
using testing::open_store;
using testing::options_in;
using testing::point;
using testing::refusal;
using testing::start_of;
using testing::step;

constexpr const char* earlier = "aaaaaaaaaaaaaaaa";
constexpr const char* later = "bbbbbbbbbbbbbbbb";

RunOptions worker(MemoryStorage& disk, const char* job, std::uint64_t rank, std::uint64_t world_size = 2) {
  RunOptions options = options_in(disk);
  options.job = job;
  options.world_size = world_size;
  options.rank = rank;
  return options;
}

// A process of the job that has saved this much, and is no more.
void leave_behind(const RunOptions& options, std::uint64_t steps, bool is_done = false) {
  RunStore store = open_store(options);
  ASSERT_TRUE(store.save(point(start_of(0), 0)));
  for (std::uint64_t number = 100; number <= steps; number += 100)
    ASSERT_TRUE(store.save(point(step(0, number), 1)));
  if (is_done) {
    ASSERT_TRUE(store.set_done());
  }
}

TEST(JobsOnOnePath, AreNeverRemovedBeforeTheyAreFinished) {
  MemoryStorage disk;
  leave_behind(worker(disk, earlier, 0), 200);
  leave_behind(worker(disk, earlier, 1), 100);
  const auto before = disk.paths();
  EXPECT_THAT(
      refusal(worker(disk, later, 1)),
      Mentions("MS_RECOVERY_PATH='/recovery'", "'/recovery/job-aaaaaaaaaaaaaaaa'", "step 200", "call 0",
               "0, 1", "removed", "MUSTER_FRESH=1", "`muster", "/recovery/job-aaaaaaaaaaaaaaaa`"));
  EXPECT_EQ(disk.paths(), before);
  EXPECT_EQ(open_store(worker(disk, earlier, 1)).points(), (std::vector{start_of(0), step(0, 100)}));
}

TEST(JobsOnOnePath, AreClearedAwayWhenEachOfTheirWorkersIsDone) {
  MemoryStorage disk;
  leave_behind(worker(disk, earlier, 0), 200, true);
  leave_behind(worker(disk, earlier, 1), 200);
  EXPECT_THAT(refusal(worker(disk, later, 0)), HasSubstr("is not finished"));
  leave_behind(worker(disk, earlier, 1), 200, true);
  ASSERT_TRUE(disk.make_folder("/recovery/job-of-mine/worker_1"));
  const RunStore first = open_store(worker(disk, later, 0));
  const RunStore second = open_store(worker(disk, later, 1));
  EXPECT_THAT(disk.list("/recovery").value(),
              ElementsAre("job-bbbbbbbbbbbbbbbb", "job-of-mine", "jobs.lock"));
}

TEST(JobsOnOnePath, AreNotDoneAnyMoreWhenAWorkerComesBack) {
  MemoryStorage disk;
  leave_behind(worker(disk, earlier, 0), 200, true);
  leave_behind(worker(disk, earlier, 0), 300);
  EXPECT_THAT(refusal(worker(disk, later, 0)), HasSubstr("is not finished"));
}

TEST(JobsOnOnePath, ThatKeptNothingAreNoObstacle) {
  MemoryStorage disk;
  (void)open_store(worker(disk, earlier, 0));
  EXPECT_EQ(refusal(worker(disk, later, 0)), "opened");
}

TEST(JobsOnOnePath, ThatKeptWhatLooksLikeNothingAreOne) {
  for (const char* name : {".old-call_0.step_100", "call_0.step_100.damaged"}) {
    MemoryStorage disk;
    (void)open_store(worker(disk, earlier, 0));
    ASSERT_TRUE(disk.make_folder(std::string("/recovery/job-aaaaaaaaaaaaaaaa/worker_0/") + name));
    EXPECT_THAT(refusal(worker(disk, later, 0)), HasSubstr("is not finished")) << name;
  }
}

TEST(JobsOnOnePath, AreClearedAwayWhateverRankThisPathHadBefore) {
  MemoryStorage disk;
  leave_behind(worker(disk, earlier, 1), 200, true);
  EXPECT_EQ(refusal(worker(disk, later, 0)), "opened");
  EXPECT_THAT(disk.list("/recovery").value(), ElementsAre("job-bbbbbbbbbbbbbbbb", "jobs.lock"));
}

TEST(JobsOnOnePath, AreThrownAwayOnDemandWithAWord) {
  MemoryStorage disk;
  leave_behind(worker(disk, earlier, 0), 200);
  RunOptions options = worker(disk, later, 0);
  options.fresh = true;
  ::testing::internal::CaptureStderr();
  const RunStore store = open_store(options);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              Mentions("MUSTER_FRESH=1", "removing", "'/recovery/job-aaaaaaaaaaaaaaaa'", "of 2", "step 200"));
  EXPECT_THAT(disk.list("/recovery").value(), ElementsAre("job-bbbbbbbbbbbbbbbb", "jobs.lock"));
}

TEST(JobsOnOnePath, KeepWhatIsTheirOwnThoughTheyAreToldToBeginAnew) {
  MemoryStorage disk;
  leave_behind(worker(disk, later, 0), 200);
  RunOptions again = worker(disk, later, 0);
  again.fresh = true;  // a process that was started again has the variable still
  EXPECT_EQ(open_store(again).points().size(), 3u);
}

TEST(JobsOnOnePath, AreRefusedWhileAnotherOneIsUnderWay) {
  MemoryStorage disk;
  RunStore first = open_store(worker(disk, earlier, 0));
  ASSERT_TRUE(first.save(point(step(0, 1), 1)));
  RunOptions second = worker(disk, later, 0);
  for (const bool fresh : {false, true}) {
    second.fresh = fresh;
    EXPECT_THAT(refusal(second), Mentions("'/recovery'", "aaaaaaaaaaaaaaaa", "worker 0"));
  }
  EXPECT_EQ(refusal(worker(disk, earlier, 1)), "opened") << "a worker of the same job";
  ASSERT_TRUE(first.set_done());
  EXPECT_EQ(refusal(second), "opened") << "though the process has not ended yet";
}

TEST(JobsOnOnePath, AreFoundByWhatTheyLeft) {
  MemoryStorage disk;
  EXPECT_TRUE(jobs_below("/recovery", disk).empty());
  leave_behind(worker(disk, earlier, 10, 16), 200);
  leave_behind(worker(disk, earlier, 9, 16), 100, true);
  RunStore store = open_store(worker(disk, earlier, 3, 16));
  ASSERT_TRUE(disk.make_folder("/recovery/job-0123456789abcdeF"));
  ASSERT_TRUE(disk.make_folder("/recovery/job-aaaaaaaaaaaaaaaa/worker_03"));
  const std::vector<FoundJob> jobs = jobs_below("/recovery", disk);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].job, earlier);
  EXPECT_EQ(jobs[0].world_size, 16u);
  EXPECT_THAT(jobs[0].ranks, ElementsAre(3, 9, 10));
  EXPECT_EQ(jobs[0].newest, step(0, 200));
  EXPECT_EQ(jobs[0].path, "/recovery/job-aaaaaaaaaaaaaaaa");
  EXPECT_FALSE(jobs[0].is_done);
  EXPECT_TRUE(jobs[0].is_in_use);
}

// A kill while an old job is cleared away, or thrown away: it is there, or gone, or on its way out.
TEST(JobsOnOnePath, AreNotHalfRemovedByAKill) {
  bool was_killed = true;
  for (std::size_t at = 1; was_killed; ++at) {
    ASSERT_LT(at, 500u);
    SCOPED_TRACE(at);
    MemoryStorage disk;
    leave_behind(worker(disk, earlier, 0), 300, true);
    disk.set_fault({.at = at, .kind = Fault::Kind::kill, .error_number = EIO});
    ::testing::internal::CaptureStderr();
    (void)RunStore::open(worker(disk, later, 0));
    (void)::testing::internal::GetCapturedStderr();
    was_killed = disk.has_failed();
    MemoryStorage next = disk.after_kill();
    EXPECT_EQ(refusal(worker(next, later, 0)), "opened");
    EXPECT_THAT(next.list("/recovery").value(), ElementsAre("job-bbbbbbbbbbbbbbbb", "jobs.lock"));
  }
}

}  // namespace
}  // namespace muster::checkpoint
