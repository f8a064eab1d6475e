#include "muster/checkpoint/removal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/checkpoint/run_store.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MemoryStorage;
using testing::open_store;
using testing::options_in;
using testing::point;
using testing::step;

const std::string job_folder = "/recovery/job-0123456789abcdef";

RunStore begin(MemoryStorage& disk, std::uint64_t rank) {
  RunOptions options = options_in(disk);
  options.rank = rank;
  RunStore store = open_store(options);
  MUSTER_CHECK(store.save(point(step(0, 100 + rank), 1)).has_value(), "the point was not saved");
  return store;
}

TEST(Removal, FindsJobsAtEachOfTheirFolders) {
  MemoryStorage disk;
  for (const std::uint64_t rank : {0, 1, 2}) (void)begin(disk, rank);
  for (const std::string& path : {std::string("/recovery"), std::string("/recovery/"), job_folder}) {
    const auto jobs = jobs_at(path, disk);
    ASSERT_EQ(jobs.size(), 1u) << path;
    EXPECT_THAT(jobs[0].ranks, ElementsAre(0, 1, 2));
    EXPECT_EQ(recovery_path_of(jobs[0]), "/recovery");
  }
  EXPECT_THAT(jobs_at(job_folder + "/worker_1/", disk).at(0).ranks, ElementsAre(1));
  for (const char* path : {"/", "/recovery/job-ffffffffffffffff", "/recovery/job-0123456789abcdef/worker_7",
                           "/recovery/job-0123456789abcdef/worker_1/call_0.step_101", "/elsewhere/worker_1"})
    EXPECT_TRUE(jobs_at(path, disk).empty()) << path;
}

TEST(Removal, TakesAWorkerOrTheWholeJob) {
  MemoryStorage disk;
  for (const std::uint64_t rank : {0, 1}) (void)begin(disk, rank);
  ASSERT_TRUE(remove_job(jobs_at(job_folder + "/worker_1", disk).at(0), disk));
  EXPECT_THAT(disk.list(job_folder).value(), ElementsAre("in-use", "worker_0"));
  ASSERT_TRUE(remove_job(jobs_at("/recovery", disk).at(0), disk));
  EXPECT_THAT(disk.list("/recovery").value(), ElementsAre("jobs.lock"));
}

TEST(Removal, IsRefusedWhileAProcessIsUnderWay) {
  MemoryStorage disk;
  const RunStore store = begin(disk, 0);
  const auto removed = remove_job(jobs_at("/recovery", disk).at(0), disk);
  ASSERT_FALSE(removed);
  EXPECT_THAT(removed.error().message, Mentions("0123456789abcdef", "worker 0"));
  EXPECT_EQ(store.load(step(0, 100))->id, step(0, 100));
}

}  // namespace
}  // namespace muster::checkpoint
