#include "muster/cluster/scheduler/peers.h"

#include <gtest/gtest.h>

namespace muster::cluster {
namespace {

const ProcessKey key = {std::byte{1}};
const ProcessKey other_key = {std::byte{2}};

Registrant registrant(std::uint64_t incarnation) {
  return {.member = {.node_id = "0", .incarnation = incarnation}, .key = key};
}

TEST(Peers, AreKnownByTheirIncarnationAndTheirKeyTogether) {
  Peers peers;
  peers.add(3, registrant(7));
  EXPECT_EQ(peers.find_process(registrant(7).member, key), 3U);
  EXPECT_EQ(peers.find_process(registrant(7).member, other_key), 0U) << "every roster says the incarnation";
  EXPECT_EQ(peers.find_process(registrant(8).member, key), 0U);
}

TEST(Peers, GoOnUnderTheNumberOfTheirNewConnection) {
  Peers peers;
  peers.add(3, registrant(7)).process.watch_id = 3;
  peers.renumber(3, 5).said.step = 12;
  peers.renumber(5, 9);
  EXPECT_EQ(peers.find(3), nullptr);
  EXPECT_EQ(peers.at(9).said.step, 12U);
  EXPECT_EQ(peers.find_process(registrant(7).member, key), 9U);
  EXPECT_EQ(peers.watched_as(3), 9U) << "its process is watched under the first number";
}

TEST(Peers, ThatAreAwaitedHaveNumbersOfTheirOwn) {
  Peers peers;
  const PeerId first = peers.add_awaited(registrant(7));
  const PeerId second = peers.add_awaited(registrant(8));
  EXPECT_NE(first, second);
  EXPECT_EQ(peers.at(first).connection, PeerConnection::awaited);
  EXPECT_TRUE(peers.at(first).is_gone());
}

TEST(Peers, LeaveNothingBehind) {
  Peers peers;
  peers.add(3, registrant(7)).process.watch_id = 3;
  peers.renumber(3, 5);
  EXPECT_EQ(peers.remove(5).member.incarnation, 7U);
  EXPECT_EQ(peers.find(5), nullptr);
  EXPECT_EQ(peers.find_incarnation(7), nullptr);
  EXPECT_EQ(peers.watched_as(3), 3U);
}

// A newer connection of the process has its incarnation then.
TEST(Peers, ThatAreRemovedTakeNoIncarnationOfAnotherWithThem) {
  Peers peers;
  peers.add(3, registrant(7));
  peers.add(4, registrant(7));
  peers.remove(3);
  EXPECT_EQ(peers.find_process(registrant(7).member, key), 4U);
}

}  // namespace
}  // namespace muster::cluster
