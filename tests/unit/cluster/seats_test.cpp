#include "muster/cluster/seats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/base/mentions.h"

namespace muster::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Three workers with ids of their own, one without; all sit.
Seats four() {
  Roster roster;
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    roster.workers.push_back(
        {.node_id = rank == 3 ? "node-abc" : std::to_string(rank), .rank = rank, .is_named = rank != 3});
  Seats seats(roster);
  for (Seat& seat : seats.all()) seat.peer = 10 + seat.member.rank;
  return seats;
}

void vacate(Seats& seats, std::uint32_t rank, std::uint64_t step = no_step) {
  Seat& seat = *seats.find(Role::worker, rank);
  seat.peer = 0;
  seat.how = "it was killed or crashed";
  seat.step = step;
}

Member named(const std::string& id) { return {.node_id = id, .is_named = true}; }
Member unnamed() { return {.node_id = "node-new", .is_named = false}; }

std::uint32_t rank_for(Seats& seats, const Member& member) {
  const auto choice = seats.choose(member);
  return std::holds_alternative<Seat*>(choice) ? std::get<Seat*>(choice)->member.rank : 99;
}

TEST(Seats, GiveAProcessWithAnIdItsOwnTakenOrNot) {
  Seats seats = four();
  EXPECT_EQ(rank_for(seats, named("2")), 2u);
  vacate(seats, 1);
  vacate(seats, 2);
  EXPECT_EQ(rank_for(seats, named("2")), 2u);
}

TEST(Seats, GiveTheOnlyVacantOneToAProcessWithoutAnId) {
  Seats seats = four();
  vacate(seats, 1);
  EXPECT_EQ(rank_for(seats, unnamed()), 1u);
}

TEST(Seats, GiveAProcessWithoutAnIdOnlyTheSeatOfSuchAOneWhenSeveralAreVacant) {
  Seats seats = four();
  vacate(seats, 1);
  vacate(seats, 3);
  EXPECT_EQ(rank_for(seats, unnamed()), 3u);
  vacate(seats, 2);
  seats.find(Role::worker, 3u)->peer = 5;
  const auto choice = seats.choose(unnamed());
  ASSERT_TRUE(std::holds_alternative<std::string>(choice));
  EXPECT_THAT(std::get<std::string>(choice), AllOf(HasSubstr("node 1, node 2"), HasSubstr("MS_NODE_ID")));
}

TEST(Seats, GiveAnUnknownIdOnlyTheRankThatItNames) {
  Seats seats = four();
  vacate(seats, 1);
  EXPECT_EQ(rank_for(seats, named("blue")), 99u);
  vacate(seats, 3);
  EXPECT_EQ(rank_for(seats, named("3")), 3u) << "whoever sat there had no id";
  EXPECT_EQ(rank_for(seats, named("blue")), 99u);
}

TEST(Seats, FillFirstTheOneThatWaitsLongest) {
  Roster roster;
  for (std::uint32_t rank = 0; rank < 3; ++rank) roster.workers.push_back({.rank = rank});
  Seats seats(roster);
  for (Seat& seat : seats.all()) seat.wait_until = TimePoint{} + (seat.member.rank == 1 ? 1s : 2s);
  EXPECT_EQ(rank_for(seats, unnamed()), 1u);
}

TEST(Seats, HaveNoPlaceForOneTooMany) {
  Seats seats = four();
  const auto choice = seats.choose(unnamed());
  ASSERT_TRUE(std::holds_alternative<std::string>(choice));
  EXPECT_THAT(std::get<std::string>(choice), Mentions("4 workers", "(MS_WORKER_NUM)"));
}

TEST(Seats, SayWhomTheyWaitForAndWhatToDo) {
  Seats seats = four();
  EXPECT_EQ(seats.waiting_text(7), "");
  vacate(seats, 2, 812);
  EXPECT_THAT(seats.waiting_text(7), Mentions("epoch 7", "node 2", "crashed", "812", "MS_NODE_ID=2"));
  vacate(seats, 3);
  EXPECT_THAT(seats.waiting_text(7),
              Mentions("epoch 7", "node 2", "812", "worker 3", "MS_NODE_ID=2", "variables"));
}

TEST(Seats, DoNotWaitForWhoWasDone) {
  Seats seats = four();
  vacate(seats, 2);
  seats.find(Role::worker, 2u)->member.has_left = true;
  EXPECT_TRUE(seats.vacant().empty());
  EXPECT_EQ(seats.waiting_text(7), "");
}

TEST(Seats, NameOnlyAFewOfManyWhoAreMissing) {
  Roster roster;
  for (std::uint32_t rank = 0; rank < 100; ++rank)
    roster.workers.push_back({.node_id = std::to_string(rank), .rank = rank, .is_named = true});
  const std::string text = Seats(roster).waiting_text(2);
  EXPECT_THAT(text, AllOf(HasSubstr("node 7 ("), HasSubstr(", 92 more - start them again")));
}

}  // namespace
}  // namespace muster::cluster
