#include "muster/train/metric_writer.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace muster::train {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

// The steps that were written.
class Written {
 public:
  MetricWriter::Write write() {
    return [this](std::span<const MetricRow> rows) -> Result<> {
      if (delay > 0ns) std::this_thread::sleep_for(delay);
      const std::lock_guard lock(mutex_);
      if (!error.empty()) return fail(Code::io, error);
      for (const MetricRow& row : rows) steps_.push_back(row.step);
      return {};
    };
  }
  std::vector<std::int64_t> steps() const {
    const std::lock_guard lock(mutex_);
    return steps_;
  }
  bool reaches(std::size_t count, Duration limit) const {
    const TimePoint end = real_clock().now() + limit;
    while (steps().size() < count && real_clock().now() < end) std::this_thread::sleep_for(5ms);
    return steps().size() >= count;
  }

  Duration delay{};
  std::string error;

 private:
  mutable std::mutex mutex_;
  std::vector<std::int64_t> steps_;
};

std::vector<std::int64_t> up_to(std::int64_t last) {
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 1; step <= last; ++step) steps.push_back(step);
  return steps;
}

TEST(MetricWriter, WritesEveryRowInOrderWhenTheFileIsSlowerThanTheTraining) {
  Written written;
  written.delay = 3ms;
  const auto last = static_cast<std::int64_t>(5 * MetricWriter::capacity + 7);
  {
    MetricWriter writer(written.write());
    for (std::int64_t step = 1; step <= last; ++step) ASSERT_TRUE(writer.push({.step = step}));
  }
  EXPECT_EQ(written.steps(), up_to(last));
}

TEST(MetricWriter, WritesARowThatNothingFollows) {
  Written written;
  MetricWriter writer(written.write());
  for (std::size_t step = 1; step <= 2; ++step) {  // also behind a time in which nothing waited
    ASSERT_TRUE(writer.push({.step = static_cast<std::int64_t>(step)}));
    EXPECT_TRUE(written.reaches(step, 10s));
  }
}

TEST(MetricWriter, HasWrittenEverythingBehindFlush) {
  Written written;
  MetricWriter writer(written.write());
  for (std::int64_t step = 1; step <= 200; ++step) {
    ASSERT_TRUE(writer.push({.step = step}));
    ASSERT_TRUE(writer.flush());
    ASSERT_EQ(written.steps().size(), static_cast<std::size_t>(step));
  }
}

TEST(MetricWriter, TellsAnErrorOnceAndHoldsUpNobody) {
  Written written;
  written.error = "the disk is full";
  MetricWriter writer(written.write());
  ASSERT_TRUE(writer.push({.step = 1}));
  const Result<> flushed = writer.flush();
  ASSERT_FALSE(flushed);
  EXPECT_THAT(flushed.error().message, HasSubstr("the disk is full"));
  for (std::int64_t step = 2; step <= static_cast<std::int64_t>(3 * MetricWriter::capacity); ++step)
    ASSERT_TRUE(writer.push({.step = step}));
  EXPECT_TRUE(writer.flush());
  EXPECT_TRUE(written.steps().empty());
}

TEST(MetricWriter, FlushesAllBeforeTheProcessEnds) {
  Written written;
  MetricWriter writer(written.write());
  ASSERT_TRUE(writer.push({.step = 1}));
  std::thread([] { MetricWriter::flush_all(10s); }).join();
  EXPECT_EQ(written.steps(), up_to(1));
}

TEST(MetricWriter, WaitsAtTheEndOfAProcessNoLongerThanItIsTold) {
  Written written;
  written.delay = 2s;
  MetricWriter writer(written.write());
  ASSERT_TRUE(writer.push({.step = 1}));
  const TimePoint begin = real_clock().now();
  MetricWriter::flush_all(50ms);
  EXPECT_LT(real_clock().now() - begin, 1s);
}

// What the child writes, by its exit status: 100 and one for each row.
int rows_written_by_child(Written& written, MetricWriter& writer, int more) {
  const std::size_t before = written.steps().size();
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < more; ++i)
      if (!writer.push({.step = 100 + i})) ::_exit(1);
    if (!writer.flush()) ::_exit(1);
    MetricWriter::flush_all(1s);
    writer.~MetricWriter();
    ::_exit(static_cast<int>(100 + written.steps().size() - before));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) - 100 : -1;
}

TEST(MetricWriter, LeavesTheRowsOfTheParentToItInAForkedChild) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer starts no thread in a child of a process with threads";
#endif
  Written written;
  MetricWriter writer(written.write());
  ASSERT_TRUE(writer.push({.step = 1}));
  ASSERT_TRUE(writer.flush());
  ASSERT_TRUE(writer.push({.step = 2}));  // waits while the child lives
  EXPECT_EQ(rows_written_by_child(written, writer, 0), 0);
  EXPECT_EQ(rows_written_by_child(written, writer, 3), 3);
  ASSERT_TRUE(writer.push({.step = 3}));
  ASSERT_TRUE(writer.flush());
  EXPECT_EQ(written.steps(), up_to(3));
}

}  // namespace
}  // namespace muster::train
