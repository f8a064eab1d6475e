#include "muster/server/row_cache.h"

#include <gtest/gtest.h>

namespace muster::server {
namespace {
namespace row_cache_test {

constexpr std::size_t width = 2;

void put(RowCache& cache, std::uint64_t id, std::uint64_t applied = 0) {
  const float values[width] = {static_cast<float>(id), 0.5F};
  cache.put(id, {.values = values, .applied = applied});
}

TEST(RowCache, GivesRowsThatAreNotTooOld) {
  RowCache cache(4, width);
  put(cache, 7, 3);
  EXPECT_EQ(cache.find(7, 4).values, nullptr);
  ASSERT_NE(cache.find(7, 3).values, nullptr);
  EXPECT_EQ(cache.find(7, 3).values[0], 7.0F);
  EXPECT_EQ(cache.find(7, 3).applied, 3U);
  put(cache, 7, 5);
  EXPECT_EQ(cache.find(7, 5).applied, 5U);
  EXPECT_EQ(cache.find(8, 0).values, nullptr);
  cache.clear();
  EXPECT_EQ(cache.find(7, 0).values, nullptr);
}

TEST(RowCache, KeepsThoseThatAreUsed) {
  RowCache cache(3, width);
  for (const std::uint64_t id : {1, 2, 3}) put(cache, id);
  put(cache, 4);
  for (std::uint64_t id = 10; id < 20; ++id) {
    ASSERT_NE(cache.find(4, 0).values, nullptr);
    put(cache, id);
  }
  EXPECT_NE(cache.find(4, 0).values, nullptr);
  EXPECT_EQ(cache.find(1, 0).values, nullptr);
  EXPECT_NE(cache.find(19, 0).values, nullptr);
  EXPECT_EQ(cache.find(10, 0).values, nullptr);
}

TEST(RowCache, KeepsNothingWithoutRoom) {
  RowCache cache(0, width);
  put(cache, 1);
  EXPECT_EQ(cache.find(1, 0).values, nullptr);
}

}  // namespace row_cache_test
}  // namespace
}  // namespace muster::server
