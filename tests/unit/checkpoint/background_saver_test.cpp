#include "muster/checkpoint/background_saver.h"

#include <gtest/gtest.h>

#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/checkpoint/points.h"

namespace muster::checkpoint {
namespace {

using testing::MemoryStorage;
using testing::open_store;
using testing::point;
using testing::step;

TEST(BackgroundSaver, SavesPointsInTheirOrder) {
  MemoryStorage disk;
  RunStore store = open_store(disk);
  BackgroundSaver saver(store);
  for (std::uint64_t i = 1; i <= 4; ++i) saver.save(point(step(0, i), 1.0F));
  ASSERT_TRUE(saver.wait());
  EXPECT_EQ(store.points(), (std::vector{step(0, 1), step(0, 2), step(0, 3), step(0, 4)}));
}

}  // namespace
}  // namespace muster::checkpoint
