// What a worker removes, and what it keeps for the others.
#include "muster/checkpoint/retention.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "muster/checkpoint/run_store.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {
namespace retention_test {

using testing::end_of;
using testing::Fault;
using testing::MemoryStorage;
using testing::open_store;
using testing::options_in;
using testing::point;
using testing::start_of;
using testing::step;

using Names = std::vector<std::string>;

Names names(const RunStore& store) {
  Names found;
  for (const PointId& id : store.points()) found.push_back(folder_name(id));
  return found;
}

bool holds(const RunStore& store, const PointId& id) {
  const auto points = store.points();
  return std::find(points.begin(), points.end(), id) != points.end();
}

void save(RunStore& store, std::initializer_list<PointId> ids) {
  for (const PointId& id : ids) ASSERT_TRUE(store.save(point(id, 1))) << to_string(id);
}

void save_steps(RunStore& store, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t number = first; number <= last; number += 100) save(store, {step(0, number)});
}

TEST(Retention, KeepsTheNewestStepsTheNewestStartAndWhatAllHold) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  save(store, {start_of(0)});
  for (std::uint64_t number = 100; number <= 800; number += 100) {
    save(store, {step(0, number)});
    store.set_committed(step(0, number));
  }
  EXPECT_EQ(names(store), (Names{"call_0.start", "call_0.step_400", "call_0.step_500", "call_0.step_600",
                                 "call_0.step_700", "call_0.step_800"}));
  EXPECT_EQ(open_store(disk).points(), store.points()) << "the disk knows the same";
}

TEST(Retention, KeepsFourStepsAtLeast) {
  MemoryStorage disk;
  RunOptions options = options_in(disk);
  options.keep_steps = 1;
  RunStore store = open_store(options);
  save(store, {step(0, 1)});
  for (std::uint64_t number = 2; number <= 5; ++number) {
    save(store, {step(0, number)});
    store.set_committed(step(0, number));
  }
  EXPECT_EQ(names(store), (Names{"call_0.step_2", "call_0.step_3", "call_0.step_4", "call_0.step_5"}));
}

// The disk of worker 1 is full for more saves than worker 0 keeps points.
TEST(Retention, LeavesAPointThatAllHoldWhileTheDiskOfOneIsFull) {
  MemoryStorage disks[2];
  std::vector<RunStore> stores;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    RunOptions options = options_in(disks[rank]);
    options.rank = rank;
    stores.push_back(open_store(options));
    save(stores[rank], {start_of(0)});
    save_steps(stores[rank], 100, 200);
  }
  for (RunStore& store : stores) store.set_committed(step(0, 200));
  disks[1].set_fault({.at = 1, .kind = Fault::Kind::forever, .error_number = ENOSPC});
  for (std::uint64_t number = 300; number <= 1200; number += 100) {
    EXPECT_TRUE(stores[0].save(point(step(0, number), 1)));
    EXPECT_FALSE(stores[1].save(point(step(0, number), 1)));
  }
  for (const RunStore& store : stores) EXPECT_TRUE(holds(store, step(0, 200)));
  EXPECT_EQ(names(stores[0]), (Names{"call_0.start", "call_0.step_200", "call_0.step_800", "call_0.step_900",
                                     "call_0.step_1000", "call_0.step_1100", "call_0.step_1200"}))
      << "and no more";
  disks[1].set_fault({});
  for (RunStore& store : stores) save(store, {step(0, 1300)});
  for (RunStore& store : stores) store.set_committed(step(0, 1300));
  for (RunStore& store : stores) save(store, {step(0, 1400)});
  EXPECT_FALSE(holds(stores[0], step(0, 200)));
}

TEST(Retention, KeepsTheOldestWhileNobodyKnowsWhatAllHold) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  save(store, {start_of(0)});
  save_steps(store, 100, 2000);
  EXPECT_EQ(names(store), (Names{"call_0.start", "call_0.step_100", "call_0.step_1600", "call_0.step_1700",
                                 "call_0.step_1800", "call_0.step_1900", "call_0.step_2000"}));
}

TEST(Retention, KeepsTheOldestWhenWhatAllHoldIsDamagedHere) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  save(store, {start_of(0)});
  save_steps(store, 100, 300);
  store.set_committed(step(0, 300));
  ::testing::internal::CaptureStderr();
  store.drop(step(0, 300), "a bit was wrong");
  (void)::testing::internal::GetCapturedStderr();
  save_steps(store, 400, 2000);
  EXPECT_TRUE(holds(store, start_of(0)));
  EXPECT_TRUE(holds(store, step(0, 100)));
}

TEST(Retention, KnowsWhatAllHoldAfterEverybodyHasDied) {
  MemoryStorage disk;
  {
    RunStore store = open_store(disk);
    save(store, {start_of(0)});
    save_steps(store, 100, 300);
    store.set_committed(step(0, 200));
    save_steps(store, 400, 900);
  }
  for (const bool power_is_lost : {false, true}) {
    MemoryStorage next = power_is_lost ? disk.after_power_loss(true) : disk.after_kill();
    RunStore store = open_store(next);
    save_steps(store, 1000, 1500);
    EXPECT_TRUE(holds(store, step(0, 200))) << power_is_lost;
  }
}

TEST(Retention, LeavesTheFutureUntilAllHoldAPointBeforeIt) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  save(store, {start_of(0)});
  save_steps(store, 200, 600);
  save(store, {step(0, 100)});
  EXPECT_EQ(store.points().size(), 7u) << "who knows whether all hold the start, or the step before";
  store.set_committed(step(0, 100));
  save(store, {step(0, 150)});
  EXPECT_EQ(names(store), (Names{"call_0.start", "call_0.step_100", "call_0.step_150"}));
}

TEST(Retention, LeavesTheNextCallWhenAnEndIsSavedLate) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  save(store, {start_of(0), step(0, 100)});
  store.set_committed(step(0, 100));
  save(store, {start_of(1), step(1, 100), end_of(0)});
  EXPECT_TRUE(holds(store, step(1, 100)));
  EXPECT_TRUE(holds(store, start_of(1)));
}

TEST(Retention, IsBoundedHoweverOftenAJobGoesBack) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  const RandomStream random(7, 0);
  for (std::uint64_t round = 0; round < 400; ++round) {
    save(store, {step(random.below(2 * round, 3), 1 + random.below(2 * round + 1, 1000))});
    ASSERT_LE(store.points().size(), 12u) << "twice the five steps, and the two oldest";
  }
}

TEST(Retention, KeepsWhatAnEndReplacesUntilAllHaveThatEnd) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  save(store, {start_of(0)});
  save_steps(store, 100, 700);
  store.set_committed(step(0, 100));
  save(store, {end_of(0), start_of(1)});
  EXPECT_TRUE(holds(store, step(0, 100))) << "another worker may not have the end";
  save(store, {end_of(1)});
  EXPECT_TRUE(holds(store, end_of(0)));
  store.call_is_finished(0);
  store.call_is_finished(1);
  save(store, {start_of(2)});
  EXPECT_FALSE(holds(store, end_of(0))) << "a later end, which all have, has the same tensors";
  EXPECT_TRUE(holds(store, end_of(1)));
  EXPECT_FALSE(holds(store, step(0, 100)));
}

TEST(Retention, KeepsTheEndsOfCallsThatTrainedSomethingElse) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  const auto end = [&](std::uint64_t call, const char* name, Shape shape) {
    ASSERT_TRUE(store.save(
        {.id = end_of(call), .tensors = {{name, Tensor::zeros(DType::float32, std::move(shape))}}}));
    store.call_is_finished(call);
  };
  end(0, "generator", {2});
  end(1, "critic", {2});
  end(2, "critic", {3});
  end(3, "generator", {2});
  save(store, {start_of(4)});
  EXPECT_EQ(names(store), (Names{"call_1.end", "call_2.end", "call_3.end", "call_4.start"}));
  EXPECT_EQ(open_store(disk).points(), store.points());
}

TEST(Common, IsReadAsItWasWrittenOrNotAtAll) {
  MemoryStorage disk;
  for (const Common& common :
       {Common{}, Common{.point = start_of(0)}, Common{.point = end_of(3), .finished_calls = 4},
        Common{.point = step(1, 300), .finished_calls = 1}}) {
    ASSERT_TRUE(write_common("/c/common", common, disk));
    EXPECT_EQ(read_common("/c/common", disk), common);
  }
  auto& bytes = disk.content("/c/common");
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] ^= std::byte{1};
    EXPECT_EQ(read_common("/c/common", disk), std::nullopt) << at;
    bytes[at] ^= std::byte{1};
  }
  bytes.pop_back();
  EXPECT_EQ(read_common("/c/common", disk), std::nullopt);
  EXPECT_EQ(read_common("/c/none", disk), std::nullopt);
}

}  // namespace retention_test
}  // namespace
}  // namespace muster::checkpoint
