#include "muster/checkpoint/sample_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/memory_storage.h"

namespace muster::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::MemoryStorage;
using ::testing::Pair;

std::shared_ptr<SampleLog> log_of(MemoryStorage& disk, std::uint64_t workers, std::uint64_t rank) {
  return SampleLog::open("/log", {.world_size = workers, .rank = rank}, disk).value();
}

// An item of the rows of these numbers, as a batch.
void add(SampleLog& log, std::uint64_t pass, std::uint64_t item, std::vector<std::int64_t> rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const Tensor values[] = {Tensor::from<std::int64_t>(rows, {count}),
                           Tensor::from<std::int64_t>(rows, {count, 1})};
  ASSERT_TRUE(log.add(pass, item, values, true));
}

std::map<std::uint64_t, SamplePass> audit(const MemoryStorage& disk) {
  return audit_samples("/log", disk).value();
}

TEST(SampleLog, CountsRowsThatCameOnce) {
  MemoryStorage disk;
  for (const std::uint64_t rank : {0, 1}) {
    const auto log = log_of(disk, 2, rank);
    const auto first = static_cast<std::int64_t>(rank);
    add(*log, 0, 0, {first, first + 2});
    add(*log, 0, 1, {first + 4});
  }
  const auto passes = audit(disk);
  ASSERT_EQ(passes.size(), 1U);
  EXPECT_EQ(passes.at(0).rows, 6U);
  EXPECT_THAT(passes.at(0).by_workers, ElementsAre(Pair(2, 6)));
  EXPECT_THAT(passes.at(0).problems, IsEmpty());
}

TEST(SampleLog, NamesWhereARowCameTwice) {
  MemoryStorage disk;
  const auto one = log_of(disk, 2, 0), other = log_of(disk, 2, 1);
  for (const auto& log : {one, other}) {
    add(*log, 0, 0, {log == one ? 1 : 2});
    add(*log, 0, 1, {7});
    add(*log, 0, 2, {log == one ? 3 : 4});
  }
  EXPECT_THAT(audit(disk).at(0).problems,
              ElementsAre(Mentions("1 of its rows", "item 1 of worker 0 of 2", "item 1 of worker 1 of 2")));
}

TEST(SampleLog, ARowMayFillUpAShardOrComeTwiceInEachPass) {
  MemoryStorage disk;
  const auto log = log_of(disk, 1, 0);
  for (const std::uint64_t pass : {0, 1}) {
    add(*log, pass, 0, {5, 5, 6});
    add(*log, pass, 1, {8});
  }
  add(*log, 2, 0, {5, 5, 6});
  add(*log, 2, 1, {8, 6});
  const auto passes = audit(disk);
  for (const auto& [pass, samples] : passes) EXPECT_THAT(samples.problems, IsEmpty()) << pass;
  EXPECT_EQ(passes.at(0).filling, 0U);
  EXPECT_EQ(passes.at(2).filling, 1U);
}

TEST(SampleLog, ComparesPassesThatHaveRowsInCommon) {
  MemoryStorage disk;
  const auto log = log_of(disk, 1, 0);
  add(*log, 0, 0, {1, 2, 3});
  add(*log, 1, 0, {1, 2});
  add(*log, 2, 0, {11, 12});  // changed at random
  const auto passes = audit(disk);
  EXPECT_THAT(passes.at(0).problems, IsEmpty());
  EXPECT_THAT(passes.at(1).problems, ElementsAre(Mentions("1 rows that pass 0 has")));
  EXPECT_THAT(passes.at(2).problems, IsEmpty());
}

TEST(SampleLog, WhatAWorkerHadBehindItsNewBeginIsVoid) {
  MemoryStorage disk;
  const auto first = log_of(disk, 2, 0);
  ASSERT_TRUE(first->begin(0, 0));
  add(*first, 0, 0, {1});
  add(*first, 0, 1, {2});
  const auto again = log_of(disk, 2, 0);
  ASSERT_TRUE(again->begin(0, 1));
  add(*again, 0, 1, {2});
  const auto passes = audit(disk);
  EXPECT_EQ(passes.at(0).rows, 2U);
  EXPECT_THAT(passes.at(0).problems, IsEmpty());
}

TEST(SampleLog, WhatOthersHadBehindWhereOtherWorkersGoOnIsVoid) {
  MemoryStorage disk;
  const auto begin = [&](std::uint64_t workers, std::uint64_t item) {
    auto log = log_of(disk, workers, 0);
    EXPECT_TRUE(log->begin(0, item));
    return log;
  };
  const auto two = begin(2, 0);
  add(*two, 0, 0, {1});
  add(*two, 0, 1, {2});
  const auto four = begin(4, 0);
  ASSERT_TRUE(four->go_on_behind(2, 0, 1));
  add(*four, 0, 0, {2});
  add(*four, 0, 1, {3});
  const auto two_again = begin(2, 1);
  ASSERT_TRUE(two_again->go_on_behind(4, 0, 1));
  add(*two_again, 0, 1, {3});
  const auto passes = audit(disk);
  EXPECT_THAT(passes.at(0).by_workers, ElementsAre(Pair(2, 2), Pair(4, 1)));
  EXPECT_THAT(passes.at(0).problems, IsEmpty());
}

TEST(SampleLog, ALineThatAKillHasCutOffSaysNothing) {
  MemoryStorage disk;
  add(*log_of(disk, 1, 0), 0, 0, {1});
  auto& bytes = disk.content("/log/samples.1.0.log");
  for (const char letter : std::string("item 0 1 00")) bytes.push_back(static_cast<std::byte>(letter));
  EXPECT_EQ(audit(disk).at(0).rows, 1U);
  const auto log = log_of(disk, 1, 0);
  ASSERT_TRUE(log->begin(0, 1));
  add(*log, 0, 1, {2});
  EXPECT_EQ(audit(disk).at(0).rows, 2U);
}

TEST(SampleLog, IsMissedByName) {
  MemoryStorage disk;
  ASSERT_TRUE(disk.make_folder("/log"));
  EXPECT_THAT(audit_samples("/log", disk).error().message, Mentions("'/log'", "MUSTER_SAMPLE_LOG"));
}

}  // namespace
}  // namespace muster::checkpoint
