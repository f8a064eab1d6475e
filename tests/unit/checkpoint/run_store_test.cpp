#include "muster/checkpoint/run_store.h"

#include <gtest/gtest.h>

#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {

using testing::end_of;
using testing::expect_equal;
using testing::MemoryStorage;
using testing::open_store;
using testing::options_in;
using testing::point;
using testing::start_of;
using testing::step;

TEST(RunStore, GivesBackWhatWasSaved) {
  MemoryStorage disk;
  const Point saved = point(step(0, 100), 1.5F);
  {
    RunStore store = open_store(disk);
    ASSERT_TRUE(store.save(saved));
    EXPECT_EQ(store.points(), std::vector{saved.id});
  }
  const RunStore again = open_store(disk);
  EXPECT_EQ(again.points(), std::vector{saved.id});
  const auto loaded = again.load(saved.id);
  ASSERT_TRUE(loaded) << loaded.error().message;
  expect_equal(*loaded, saved);
}

}  // namespace
}  // namespace muster::checkpoint
