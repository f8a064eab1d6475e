#include "muster/net/unauthenticated_peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::net {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimePoint start{};

TEST(UnauthenticatedPeers, LetTheOldestGoForANewOne) {
  UnauthenticatedPeers unauthenticated({.count = 3});
  EXPECT_EQ(unauthenticated.arrive(1, "10.0.0.1", start), std::nullopt);
  EXPECT_EQ(unauthenticated.arrive(2, "10.0.0.2", start), std::nullopt);
  EXPECT_EQ(unauthenticated.arrive(3, "10.0.0.3", start), std::nullopt);
  EXPECT_EQ(unauthenticated.arrive(4, "10.0.0.4", start), 1);
  unauthenticated.leave(3);
  EXPECT_EQ(unauthenticated.arrive(5, "10.0.0.5", start), std::nullopt);
  EXPECT_EQ(unauthenticated.arrive(6, "10.0.0.6", start), 2);
  EXPECT_EQ(unauthenticated.count(), 3);
}

TEST(UnauthenticatedPeers, LetAnAddressThatFloodsThemPayItself) {
  UnauthenticatedPeers unauthenticated({.count = 4});
  EXPECT_EQ(unauthenticated.arrive(1, "10.0.0.1", start), std::nullopt);
  for (UnauthenticatedPeers::Id id = 2; id <= 4; ++id)
    EXPECT_EQ(unauthenticated.arrive(id, "10.0.0.66", start), std::nullopt);
  for (UnauthenticatedPeers::Id id = 5; id <= 100; ++id)
    EXPECT_EQ(unauthenticated.arrive(id, "10.0.0.66", start), id - 3);
  EXPECT_EQ(unauthenticated.arrive(101, "10.0.0.2", start), 1)
      << "the oldest of all, for one who floods nobody";
}

TEST(UnauthenticatedPeers, MayStayForAWhileOnly) {
  UnauthenticatedPeers unauthenticated({.time = 5s});
  EXPECT_EQ(unauthenticated.deadline(), TimePoint::max());
  unauthenticated.arrive(1, "10.0.0.1", start);
  unauthenticated.arrive(2, "10.0.0.1", start + 1s);
  unauthenticated.arrive(3, "10.0.0.1", start + 2s);
  EXPECT_EQ(unauthenticated.deadline(), start + 5s);
  EXPECT_THAT(unauthenticated.overdue(start + 4999ms), IsEmpty());
  EXPECT_THAT(unauthenticated.overdue(start + 6s), ElementsAre(1, 2));
  unauthenticated.leave(1);
  unauthenticated.leave(1);
  EXPECT_EQ(unauthenticated.deadline(), start + 6s);
}

TEST(UnauthenticatedPeers, HaveLessTimeForAHandshake) {
  UnauthenticatedPeers unauthenticated({.time = 5s, .handshake_time = 3s});
  unauthenticated.arrive(1, "10.0.0.1", start);
  unauthenticated.arrive(2, "10.0.0.1", start + 1s);
  unauthenticated.expect_handshake(2, start + 1s);
  unauthenticated.arrive(3, "10.0.0.1", start + 1s);
  unauthenticated.expect_handshake(3, start + 1s);
  EXPECT_EQ(unauthenticated.deadline(), start + 4s);
  unauthenticated.secured(3);
  unauthenticated.secured(7);
  EXPECT_THAT(unauthenticated.overdue(start + 5s), ElementsAre(2, 1));
  unauthenticated.leave(2);
  unauthenticated.leave(1);
  EXPECT_EQ(unauthenticated.deadline(), start + 6s);
  EXPECT_THAT(unauthenticated.overdue(start + 6s), ElementsAre(3));
}

TEST(UnauthenticatedPeers, GoWhereRoomIsNeededTheOldestOfAFloodFirstButNotAtOnce) {
  UnauthenticatedPeers unauthenticated({.time_least = 50ms});
  EXPECT_EQ(unauthenticated.first_to_go(start), std::nullopt);
  unauthenticated.arrive(1, "10.0.0.1", start);
  EXPECT_EQ(unauthenticated.first_to_go(start + 49ms), std::nullopt) << "it has had no time to say who it is";
  EXPECT_EQ(unauthenticated.first_to_go(start + 50ms), 1);
  unauthenticated.arrive(2, "10.0.0.66", start + 1ms);
  EXPECT_EQ(unauthenticated.first_to_go(start + 100ms), 1) << "the oldest of all";
  unauthenticated.arrive(3, "10.0.0.66", start + 2ms);
  EXPECT_EQ(unauthenticated.first_to_go(start + 100ms), 2) << "of the address where most are from";
}

TEST(UnauthenticatedPeers, LetTheLargestGoWhenTheyHoldTooMuchTogether) {
  UnauthenticatedPeers unauthenticated({.held_size_bytes = 1000});
  for (UnauthenticatedPeers::Id id = 1; id <= 3; ++id) unauthenticated.arrive(id, "10.0.0.1", start);
  EXPECT_EQ(unauthenticated.hold(1, 600), std::nullopt);
  EXPECT_EQ(unauthenticated.hold(2, 300), std::nullopt);
  EXPECT_EQ(unauthenticated.hold(2, 100), std::nullopt) << "a frame was complete";
  EXPECT_EQ(unauthenticated.hold(3, 301), 1);
  EXPECT_EQ(unauthenticated.hold(2, 600), std::nullopt);
  EXPECT_EQ(unauthenticated.hold(2, 1000), 2) << "itself";
  EXPECT_EQ(unauthenticated.hold(2, 1000), std::nullopt) << "it is gone";
}

TEST(UnauthenticatedPeers, LetTheLargestGoWhenTheyLeaveTooMuchUnreadTogether) {
  UnauthenticatedPeers unauthenticated({.held_size_bytes = 10, .unread_size_bytes = 1000});
  for (UnauthenticatedPeers::Id id = 1; id <= 3; ++id) unauthenticated.arrive(id, "10.0.0.1", start);
  for (UnauthenticatedPeers::Id id = 1; id <= 2; ++id)
    EXPECT_EQ(unauthenticated.leave_unread(id, 500), std::nullopt);
  EXPECT_EQ(unauthenticated.leave_unread(3, 1), 1) << "the oldest of the largest";
  unauthenticated.leave(2);
  EXPECT_EQ(unauthenticated.leave_unread(3, 1000), std::nullopt);
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
