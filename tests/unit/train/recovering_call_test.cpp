#include "muster/train/recovering_call.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/checkpoint/points.h"
#include "tests/unit/train/local_recovery.h"

namespace muster::train {
namespace {

using checkpoint::testing::Fault;
using checkpoint::testing::MemoryStorage;
using testing::LocalRecovery;

std::unique_ptr<RecoveringCall> begin(Recovery& recovery) { return RecoveringCall::begin(recovery).value(); }

// A call that does nothing but end.
void end_a_call(Recovery& recovery, float value) {
  const auto call = begin(recovery);
  ASSERT_TRUE(call->finish(checkpoint::testing::point(call->end_id(), value), "result"));
}

std::size_t points_in_memory(LocalRecovery& recovery) {
  const auto& pending = recovery.pending_ends();
  return static_cast<std::size_t>(
      std::count_if(pending.begin(), pending.end(), [](const auto& end) { return end.point.has_value(); }));
}

TEST(RecoveringCall, EndsThatNoDiskTakesFillNoMemory) {
  MemoryStorage disk;
  LocalRecovery recovery(disk);
  disk.set_fault({.at = 1, .kind = Fault::Kind::forever});
  for (int i = 0; i < 5; ++i) end_a_call(recovery, static_cast<float>(i));
  EXPECT_EQ(recovery.pending_ends().size(), 5U);
  EXPECT_EQ(points_in_memory(recovery), 1U);
  EXPECT_EQ(recovery.finished, 0U) << "no call is over";
}

TEST(RecoveringCall, EndsThatNoDiskTookAreKeptOnceItHasRoom) {
  MemoryStorage disk;
  LocalRecovery recovery(disk);
  checkpoint::RunStore& store = *recovery.store().value();
  disk.set_fault({.at = 1, .kind = Fault::Kind::forever});
  for (int i = 0; i < 3; ++i) end_a_call(recovery, static_cast<float>(i));
  EXPECT_EQ(store.finished_calls(), 0U);
  disk.set_fault({});
  const auto call = begin(recovery);
  call->save(checkpoint::testing::point(call->start_id(), 7));
  EXPECT_TRUE(recovery.pending_ends().empty());
  EXPECT_EQ(store.finished_calls(), 3U);
  const auto kept = store.load(checkpoint::testing::end_of(2));
  ASSERT_TRUE(kept) << kept.error().message;
  checkpoint::testing::expect_equal(*kept, checkpoint::testing::point(checkpoint::testing::end_of(2), 2));
}

// An end is not in the journal before a point has what was in it: it would be taken for one that is no more
// needed.
TEST(RecoveringCall, NoEndIsRecordedBeforeItsStateIsKept) {
  for (std::size_t at = 1; at < 60; ++at) {
    MemoryStorage disk;
    LocalRecovery recovery(disk);
    disk.set_fault({.at = 1, .kind = Fault::Kind::forever});
    for (int i = 0; i < 3; ++i) end_a_call(recovery, static_cast<float>(i));
    disk.set_fault({.at = at});
    const auto call = begin(recovery);
    call->save(checkpoint::testing::point(call->start_id(), 7));
    const checkpoint::RunStore& store = *recovery.store().value();
    const auto points = store.points();
    const bool has_state =
        std::find(points.begin(), points.end(), checkpoint::testing::end_of(2)) != points.end();
    EXPECT_TRUE(has_state || !store.finished(0)) << "operation " << at << " fails";
  }
}

}  // namespace
}  // namespace muster::train
