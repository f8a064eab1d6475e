#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "muster/checkpoint/checkpoint.h"
#include "tests/unit/base/mentions.h"

namespace muster::checkpoint {
namespace {
namespace resumption_test {

using State = Standing::State;
using Way = Resumption::Way;
using Sources = std::vector<std::optional<std::uint32_t>>;

HeldPoint start(std::uint64_t call, bool is_shared = true) { return {{.call = call}, is_shared}; }
HeldPoint step(std::uint64_t call, std::uint64_t number, bool is_shared = true) {
  return {{.call = call, .moment = PointId::Moment::step, .step = number}, is_shared};
}
HeldPoint end(std::uint64_t call, bool is_shared = true) {
  return {{.call = call, .moment = PointId::Moment::end}, is_shared};
}

// ---- The fault that began it: a worker comes back without its folder --------------------------------------

TEST(Resumption, TakesTheMemoryOfASurvivorWhereAFolderIsLost) {
  const Standing rows[] = {
      {.state = State::live, .steps = 267, .is_shared = true, .points = {start(0), step(0, 260)}},
      {.state = State::fresh}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::live);
  EXPECT_EQ(way.steps, 267u);
  EXPECT_EQ(way.sources, (Sources{std::nullopt, 0}));
}

TEST(Resumption, NeverBeginsAnewWhereAWorkerHasPointsBehindTheStart) {
  const Standing rows[] = {{.state = State::spoilt,
                            .knows_common = true,
                            .points = {start(0, false), step(0, 180, false), step(0, 260, false)}},
                           {.state = State::fresh}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::lost);
  EXPECT_NE(way.reason.find("worker 0 has points up to step 260 of call 0"), std::string::npos) << way.reason;
  EXPECT_NE(way.reason.find("worker 1 has nothing of call 0"), std::string::npos) << way.reason;
}

TEST(Resumption, NeverServesAPointBehindWhichItsHolderHasOthers) {
  const Standing rows[] = {
      {.state = State::fresh, .knows_common = true, .points = {start(0), step(0, 180, false)}},
      {.state = State::fresh}};
  EXPECT_EQ(decide(rows).way, Way::lost);
}

TEST(Resumption, TakesAPointFromAnotherDiskWhenAllHaveDied) {
  const Standing rows[] = {{.state = State::fresh, .points = {start(0), step(0, 180), step(0, 260)}},
                           {.state = State::fresh},
                           {.state = State::fresh, .points = {start(0), step(0, 180)}}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::point);
  EXPECT_EQ(way.id, step(0, 260).id);
  EXPECT_EQ(way.sources, (Sources{std::nullopt, 0, 0}));
}

TEST(Resumption, GoesToTheNewestPointOfAllWhereStateIsOnesOwn) {
  const Standing rows[] = {
      {.state = State::live, .steps = 267, .points = {step(0, 180, false), step(0, 260, false)}},
      {.state = State::fresh, .points = {step(0, 180, false)}}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::point);
  EXPECT_EQ(way.id, step(0, 180).id);
  EXPECT_EQ(way.sources, (Sources{std::nullopt, std::nullopt}));
  EXPECT_THAT(way.reason, Mentions("worker 1", "state"));
}

TEST(Resumption, BeginsAgainWhereOneDiedBeforeItsFirstPointWasOnItsDisk) {
  const Standing rows[] = {
      {.state = State::spoilt, .points = {start(0, false), step(0, 10, false), step(0, 20, false)}},
      {.state = State::fresh}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::point);
  EXPECT_EQ(way.id, start(0).id);
}

TEST(Resumption, DoesNotBeginAgainWhereAFolderMayBeLostAndAnotherOneIsBehindTheStart) {
  const Standing rows[] = {{.state = State::spoilt, .points = {start(0, false), step(0, 10, false)}},
                           {.state = State::fresh, .may_have_lost = true}};
  EXPECT_EQ(decide(rows).way, Way::lost);
}

TEST(Resumption, BeginsAgainInANewFolderWhereNobodyIsBehindTheStart) {
  const Standing rows[] = {{.state = State::spoilt, .points = {start(0, false)}},
                           {.state = State::fresh, .may_have_lost = true}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::point);
  EXPECT_EQ(way.id, start(0).id);
}

TEST(Resumption, BeginsWhereNobodyHasAnything) {
  const Standing rows[] = {{.state = State::fresh}, {.state = State::fresh, .points = {start(0)}}};
  EXPECT_EQ(decide(rows).way, Way::start);
}

TEST(Resumption, GoesToTheStartThatSomeHaveOnDiskAndOthersInMemory) {
  const Standing rows[] = {{.state = State::live, .steps = 5, .points = {start(0, false)}},
                           {.state = State::fresh}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::point);
  EXPECT_EQ(way.id, start(0).id);
}

// ---- Steps that some have all of --------------------------------------------------------------------------

TEST(Resumption, EndsAStepThatSomebodyIsPast) {
  const Standing rows[] = {{.state = State::live, .steps = 8, .is_shared = true},
                           {.state = State::committing, .steps = 7, .is_shared = true},
                           {.state = State::fresh}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::ask_again);
  EXPECT_EQ(way.commits, (std::vector<bool>{false, true, false}));
}

TEST(Resumption, EndsAStepThatAllWhoLiveHaveAllOf) {
  const Standing rows[] = {{.state = State::committing, .steps = 7, .is_shared = true},
                           {.state = State::fresh},
                           {.state = State::committing, .steps = 7, .is_shared = true}};
  EXPECT_EQ(decide(rows).commits, (std::vector<bool>{true, false, true}));
}

TEST(Resumption, MakesAStepAnewThatSomebodyLacksAPartOf) {
  const Standing rows[] = {{.state = State::committing, .steps = 7, .is_shared = true},
                           {.state = State::live, .steps = 7, .is_shared = true},
                           {.state = State::fresh}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::live);
  EXPECT_EQ(way.steps, 7u);
}

TEST(Resumption, GoesBackWhereAStepThatSomebodyLacksAPartOfMayHaveChangedStatisticsOfAnother) {
  const Standing rows[] = {{.state = State::committing, .steps = 7, .points = {step(0, 5, false)}},
                           {.state = State::live, .steps = 7, .points = {step(0, 5, false)}}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::point);
  EXPECT_EQ(way.id, step(0, 5).id);
  EXPECT_NE(way.reason.find("worker 0 has state of its own, which step 8 may have changed"),
            std::string::npos)
      << way.reason;
  const Standing alike[] = {{.state = State::committing, .steps = 7},
                            {.state = State::committing, .steps = 7}};
  EXPECT_EQ(decide(alike).commits, (std::vector<bool>{true, true}));
}

TEST(Resumption, GoesBackWhenStepsAreFurtherApartThanOne) {
  const Standing rows[] = {{.state = State::live, .steps = 9, .is_shared = true, .points = {step(0, 5)}},
                           {.state = State::live, .steps = 7, .is_shared = true, .points = {step(0, 5)}}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::point);
  EXPECT_EQ(way.id, step(0, 5).id);
}

TEST(Resumption, GoesOnAsItIsWhenOnlyAConnectionWasLost) {
  const Standing rows[] = {{.state = State::live, .steps = 9}, {.state = State::live, .steps = 9}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::live);
  EXPECT_EQ(way.sources, (Sources{std::nullopt, std::nullopt}));
}

// ---- Stages -----------------------------------------------------------------------------------------------

TEST(Resumption, AStageIsServedByItsCopyAlone) {
  const Standing rows[] = {{.state = State::live, .steps = 3, .is_shared = true, .stage = 0},
                           {.state = State::fresh, .stage = 1},
                           {.state = State::live, .steps = 3, .is_shared = true, .stage = 0},
                           {.state = State::live, .steps = 3, .is_shared = true, .stage = 1}};
  EXPECT_EQ(decide(rows).sources, (Sources{std::nullopt, 3, std::nullopt, std::nullopt}));
  const Standing alone[] = {{.state = State::live, .steps = 3, .is_shared = true, .stage = 0},
                            {.state = State::fresh, .stage = 1}};
  EXPECT_NE(decide(alone).way, Way::live);
}

TEST(Resumption, SeveralWhoReturnAreServedInTurn) {
  const Standing rows[] = {{.state = State::live, .steps = 3, .is_shared = true},
                           {.state = State::fresh},
                           {.state = State::fresh},
                           {.state = State::live, .steps = 3, .is_shared = true}};
  EXPECT_EQ(decide(rows).sources, (Sources{std::nullopt, 0, 3, std::nullopt}));
}

// ---- Calls that are over ----------------------------------------------------------------------------------

TEST(Resumption, WhoIsBehindTakesTheEndFromWhoHasIt) {
  const Standing rows[] = {{.state = State::live, .call = 1, .steps = 200, .is_shared = true, .finished = 1},
                           {.state = State::behind, .call = 0, .finished = 0}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::end_of);
  EXPECT_EQ(way.sources, (Sources{std::nullopt, 0}));
}

TEST(Resumption, WaitsForWhoHasTheEndOfItsCall) {
  const Standing rows[] = {{.state = State::live, .call = 1, .steps = 200, .finished = 1},
                           {.state = State::spoilt, .call = 0, .has_end = true}};
  EXPECT_EQ(decide(rows).way, Way::ask_again);
}

TEST(Resumption, SaysWhoLacksAnEndThatNobodyHas) {
  const Standing rows[] = {{.state = State::live, .call = 1, .stage = 0, .finished = 1},
                           {.state = State::behind, .call = 0, .stage = 1}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::lost);
  EXPECT_NE(way.reason.find("worker 1 lacks the end of call 0"), std::string::npos) << way.reason;
}

// Nobody's disk has taken it, but all are past it.
TEST(Resumption, TakesTheEndOfACallThatIsNotOverFromTheMemoryOfWhoIsPastIt) {
  const Standing rows[] = {{.state = State::live, .call = 2, .is_shared = true, .gives_ends_from = 0},
                           {.state = State::fresh, .call = 1},
                           {.state = State::spoilt, .call = 1, .has_end = true}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::end_of);
  EXPECT_EQ(way.sources, (Sources{std::nullopt, 0, std::nullopt}));
}

TEST(Resumption, SendsBackWhoIsPastAnEndThatNobodyCanGive) {
  const Standing rows[] = {{.state = State::live, .call = 2, .finished = 2, .gives_ends_from = 2},
                           {.state = State::fresh, .call = 1},
                           {.state = State::spoilt, .call = 1, .has_end = true}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::back);
  EXPECT_EQ(way.id, end(1).id);
  EXPECT_NE(way.reason.find("worker 1 lacks the end of call 1"), std::string::npos) << way.reason;
}

TEST(Resumption, WhoIsBehindTakesNoPointBeforeTheEnd) {
  const Standing rows[] = {{.state = State::behind, .points = {start(0), step(0, 180)}}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.way, Way::lost);
  EXPECT_NE(way.reason.find("worker 0 has points up to step 180 of call 0"), std::string::npos) << way.reason;
}

TEST(Resumption, TakesAnEndThatOneHasKeptForTheOthers) {
  const Standing rows[] = {{.state = State::spoilt, .points = {step(0, 20), end(0)}},
                           {.state = State::spoilt, .points = {step(0, 20)}}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.id, end(0).id);
  EXPECT_EQ(way.sources, (Sources{std::nullopt, 0}));
}

TEST(Resumption, TakesAPointFromWhoHasOnlyTheRecordOfTheEndBehindIt) {
  const HeldPoint record{.id = end(0).id, .is_record = true};
  const Standing rows[] = {{.state = State::fresh, .points = {start(0), step(0, 4)}},
                           {.state = State::fresh, .points = {step(0, 12), record}}};
  const Resumption way = decide(rows);
  EXPECT_EQ(way.id, step(0, 12).id) << "step 4 is behind what worker 1 has";
  EXPECT_EQ(way.sources, (Sources{1, std::nullopt}));
}

// ---- Words ------------------------------------------------------------------------------------------------

TEST(Resumption, AStandingTravelsAsWords) {
  const Standing standing{.state = State::committing,
                          .call = 3,
                          .steps = 1u << 20,
                          .is_shared = true,
                          .stage = 4095,
                          .knows_common = true,
                          .may_have_lost = true,
                          .is_eager = true,
                          .finished = 3,
                          .points = {start(3, false), step(3, 300), {.id = end(3).id, .is_record = true}}};
  EXPECT_EQ(decode_standing(encode(standing)), standing);
  EXPECT_EQ(encode(standing).size(), encode(Standing{}).size());
}

TEST(Resumption, OfTooManyPointsTheNewestAreTold) {
  Standing standing;
  for (std::uint64_t i = 1; i <= 40; ++i) standing.points.push_back(step(0, i));
  const Standing told = decode_standing(encode(standing));
  ASSERT_EQ(told.points.size(), standing_points_max);
  EXPECT_EQ(told.points.back().id, step(0, 40).id);
}

}  // namespace resumption_test
}  // namespace
}  // namespace muster::checkpoint
