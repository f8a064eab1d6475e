#include "muster/net/guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::net {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimePoint start{};

TEST(Guests, LetTheOldestGoForANewOne) {
  Guests guests({.count = 3});
  EXPECT_EQ(guests.arrive(1, "10.0.0.1", start), std::nullopt);
  EXPECT_EQ(guests.arrive(2, "10.0.0.2", start), std::nullopt);
  EXPECT_EQ(guests.arrive(3, "10.0.0.3", start), std::nullopt);
  EXPECT_EQ(guests.arrive(4, "10.0.0.4", start), 1);
  guests.leave(3);
  EXPECT_EQ(guests.arrive(5, "10.0.0.5", start), std::nullopt);
  EXPECT_EQ(guests.arrive(6, "10.0.0.6", start), 2);
  EXPECT_EQ(guests.count(), 3);
}

TEST(Guests, LetAnAddressThatFloodsThemPayItself) {
  Guests guests({.count = 4});
  EXPECT_EQ(guests.arrive(1, "10.0.0.1", start), std::nullopt);
  for (Guests::Id id = 2; id <= 4; ++id) EXPECT_EQ(guests.arrive(id, "10.0.0.66", start), std::nullopt);
  for (Guests::Id id = 5; id <= 100; ++id) EXPECT_EQ(guests.arrive(id, "10.0.0.66", start), id - 3);
  EXPECT_EQ(guests.arrive(101, "10.0.0.2", start), 1) << "the oldest of all, for one who floods nobody";
}

TEST(Guests, MayStayForAWhileOnly) {
  Guests guests({.time = 5s});
  EXPECT_EQ(guests.deadline(), TimePoint::max());
  guests.arrive(1, "10.0.0.1", start);
  guests.arrive(2, "10.0.0.1", start + 1s);
  guests.arrive(3, "10.0.0.1", start + 2s);
  EXPECT_EQ(guests.deadline(), start + 5s);
  EXPECT_THAT(guests.overdue(start + 4999ms), IsEmpty());
  EXPECT_THAT(guests.overdue(start + 6s), ElementsAre(1, 2));
  guests.leave(1);
  guests.leave(1);
  EXPECT_EQ(guests.deadline(), start + 6s);
}

TEST(Guests, HaveLessTimeForAHandshake) {
  Guests guests({.time = 5s, .handshake_time = 3s});
  guests.arrive(1, "10.0.0.1", start);
  guests.arrive(2, "10.0.0.1", start + 1s);
  guests.expect_handshake(2, start + 1s);
  guests.arrive(3, "10.0.0.1", start + 1s);
  guests.expect_handshake(3, start + 1s);
  EXPECT_EQ(guests.deadline(), start + 4s);
  guests.secured(3);
  guests.secured(7);
  EXPECT_THAT(guests.overdue(start + 5s), ElementsAre(2, 1));
  guests.leave(2);
  guests.leave(1);
  EXPECT_EQ(guests.deadline(), start + 6s);
  EXPECT_THAT(guests.overdue(start + 6s), ElementsAre(3));
}

TEST(Guests, GoWhereRoomIsNeededTheOldestOfAFloodFirstButNotAtOnce) {
  Guests guests({.time_least = 50ms});
  EXPECT_EQ(guests.first_to_go(start), std::nullopt);
  guests.arrive(1, "10.0.0.1", start);
  EXPECT_EQ(guests.first_to_go(start + 49ms), std::nullopt) << "it has had no time to say who it is";
  EXPECT_EQ(guests.first_to_go(start + 50ms), 1);
  guests.arrive(2, "10.0.0.66", start + 1ms);
  EXPECT_EQ(guests.first_to_go(start + 100ms), 1) << "the oldest of all";
  guests.arrive(3, "10.0.0.66", start + 2ms);
  EXPECT_EQ(guests.first_to_go(start + 100ms), 2) << "of the address where most are from";
}

TEST(Guests, LetTheLargestGoWhenTheyHoldTooMuchTogether) {
  Guests guests({.held_size_bytes = 1000});
  for (Guests::Id id = 1; id <= 3; ++id) guests.arrive(id, "10.0.0.1", start);
  EXPECT_EQ(guests.hold(1, 600), std::nullopt);
  EXPECT_EQ(guests.hold(2, 300), std::nullopt);
  EXPECT_EQ(guests.hold(2, 100), std::nullopt) << "a frame was complete";
  EXPECT_EQ(guests.hold(3, 301), 1);
  EXPECT_EQ(guests.hold(2, 600), std::nullopt);
  EXPECT_EQ(guests.hold(2, 1000), 2) << "itself";
  EXPECT_EQ(guests.hold(2, 1000), std::nullopt) << "it is gone";
}

TEST(Guests, LetTheLargestGoWhenTheyLeaveTooMuchUnreadTogether) {
  Guests guests({.held_size_bytes = 10, .unread_size_bytes = 1000});
  for (Guests::Id id = 1; id <= 3; ++id) guests.arrive(id, "10.0.0.1", start);
  for (Guests::Id id = 1; id <= 2; ++id) EXPECT_EQ(guests.leave_unread(id, 500), std::nullopt);
  EXPECT_EQ(guests.leave_unread(3, 1), 1) << "the oldest of the largest";
  guests.leave(2);
  EXPECT_EQ(guests.leave_unread(3, 1000), std::nullopt);
}

TEST(LineLimit, LeavesOutWhatComesTooOftenAndSaysHowMuchThatWas) {
  LineLimit limit(2, 10s);
  EXPECT_EQ(limit.take(start), "");
  EXPECT_EQ(limit.take(start + 1s), "");
  EXPECT_EQ(limit.take(start + 2s), std::nullopt);
  EXPECT_EQ(limit.take(start + 9s), std::nullopt);
  EXPECT_EQ(limit.take(start + 10s), " (and 2 more of this kind before, not shown)");
  EXPECT_EQ(limit.take(start + 11s), "");
  EXPECT_EQ(limit.take(start + 12s), std::nullopt);
}

}  // namespace
}  // namespace muster::net
