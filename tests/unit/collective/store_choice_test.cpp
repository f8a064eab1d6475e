#include "muster/collective/store_choice.h"

#include <gtest/gtest.h>

namespace muster::collective {
namespace {

using std::chrono::microseconds;

void try_out(StoreChoice& choice, std::size_t size, microseconds cached, microseconds streaming) {
  for (int call = 0; call < 20; ++call)
    choice.record(size, choice.next(size) == Stores::cached ? cached : streaming);
}

TEST(StoreChoice, KeepsWhatWasFasterForEachSize) {
  StoreChoice choice;
  try_out(choice, 1 << 20, microseconds(40), microseconds(90));
  try_out(choice, 100 << 20, microseconds(30), microseconds(15));
  EXPECT_EQ(choice.next(1 << 20), Stores::cached);
  EXPECT_EQ(choice.next(100 << 20), Stores::streaming);
}

TEST(StoreChoice, StaysWithTheCachesWhenTheGainIsSmall) {
  StoreChoice choice;
  try_out(choice, 1 << 20, microseconds(40), microseconds(38));
  EXPECT_EQ(choice.next(1 << 20), Stores::cached);
}

TEST(StoreChoice, IgnoresOneSlowCall) {
  StoreChoice choice;
  choice.record(1 << 20, microseconds(500));  // the first touch of the pages
  try_out(choice, 1 << 20, microseconds(40), microseconds(90));
  EXPECT_EQ(choice.next(1 << 20), Stores::cached);
}

TEST(StoreChoice, LeavesSmallOnesToTheCaches) {
  StoreChoice choice;
  try_out(choice, 1024, microseconds(9), microseconds(1));
  EXPECT_EQ(choice.next(1024), Stores::cached);
}

}  // namespace
}  // namespace muster::collective
