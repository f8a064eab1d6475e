#include "muster/cluster/slow_watch.h"

#include <gmock/gmock.h>

#include <random>

namespace muster::cluster {
namespace {
namespace slow_watch_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t ranks_max = 4;
constexpr auto computing = static_cast<std::size_t>(WorkPhase::computing);
constexpr auto reading = static_cast<std::size_t>(WorkPhase::reading_data);
constexpr auto saving = static_cast<std::size_t>(WorkPhase::saving);

// Steps that all make together: each takes as long as that of the slowest, and the others wait.
class SlowWatchTest : public ::testing::Test {
 protected:
  using Own = std::array<std::uint64_t, work_phase_count>;  // of one step

  SlowWatchTest() {
    for (Own& own : usual) own[computing] = 80'000, own[reading] = 10'000;
  }

  // Who was told of in so many steps.
  std::vector<SlowRank> make_steps(int count) {
    std::vector<SlowRank> told;
    for (int i = 0; i < count; ++i) {
      ++step;
      std::array<std::uint64_t, ranks_max> whole{};
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        Own own = usual[rank];
        if (change) change(rank, own);
        for (std::size_t phase = 0; phase < work_phase_count; ++phase) {
          stats[rank].counters.own_us[phase] += own[phase];
          whole[rank] += own[phase];
        }
      }
      const std::uint64_t longest = *std::ranges::max_element(whole) + 2000;
      for (std::size_t rank = 0; rank < ranks; ++rank)
        stats[rank].counters.waiting_us += longest - whole[rank];
      for (const SlowRank& slow : look()) told.push_back(slow);
    }
    return told;
  }
  std::vector<SlowRank> look() {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      stats[rank].marks = {{step, stats[rank].counters}};
      watch.hear(static_cast<std::uint32_t>(rank), stats[rank]);
    }
    return watch.look(true);
  }

  SlowWatch watch;
  std::uint64_t step = 0;
  std::size_t ranks = 4;
  std::array<Own, ranks_max> usual{};
  std::array<ProcessStats, ranks_max> stats{};
  std::function<void(std::size_t, Own&)> change;
};

TEST_F(SlowWatchTest, NamesTheRankAndWhatHoldsItUp) {
  for (const auto& [phase, cause] : {std::pair{computing, SlowCause::computing},
                                     {reading, SlowCause::reading_data},
                                     {saving, SlowCause::saving}}) {
    watch.clear();
    EXPECT_THAT(make_steps(200), IsEmpty());
    usual[2][phase] += 100'000;
    const auto told = make_steps(100);
    ASSERT_THAT(told, SizeIs(1)) << "once";
    EXPECT_EQ(told[0].rank, 2u);
    EXPECT_EQ(told[0].cause, cause);
    EXPECT_NEAR(static_cast<double>(told[0].time_us), static_cast<double>(usual[2][phase]), 10'000);
    EXPECT_NEAR(static_cast<double>(told[0].step_us), 192'000, 10'000);
    usual[2][phase] -= 100'000;
    make_steps(200);
    EXPECT_THAT(watch.slow(), IsEmpty()) << "it is as the others again";
  }
}

TEST_F(SlowWatchTest, NeedsSixStepsOnceItKnowsTheJob) {
  for (const std::size_t some : {2u, 4u}) {
    ranks = some;
    watch.clear();
    make_steps(200);
    usual[1][reading] += 100'000;
    EXPECT_THAT(make_steps(5), IsEmpty());
    EXPECT_THAT(make_steps(1), SizeIs(1));
    usual[1][reading] -= 100'000;
  }
}

TEST_F(SlowWatchTest, NeedsMoreStepsOfFewRanksFromTheStart) {
  ranks = 2;
  usual[1][reading] += 100'000;
  EXPECT_THAT(make_steps(20), IsEmpty()) << "of two one is always the slower";
  EXPECT_THAT(make_steps(20), SizeIs(1));
}

TEST_F(SlowWatchTest, ComparesTheSameStepsOfRanksThatMarkOthers) {
  const auto hear = [&](std::uint32_t rank, std::vector<std::uint64_t> steps) {
    stats[rank].marks.clear();
    for (const std::uint64_t each : steps)
      stats[rank].marks.push_back({each,
                                   {.own_us = {0, 0, 0, each * (rank == 1 ? 2000 : 1000)},
                                    .waiting_us = each * (rank == 1 ? 0 : 1000)}});
    watch.hear(rank, stats[rank]);
  };
  std::size_t told = 0;
  for (std::uint64_t first = 0; first < 400; first += 8) {
    hear(0, {first + 2, first + 4, first + 6, first + 8});
    hear(1, {first + 4, first + 8});
    hear(2, {first + 8});
    hear(3, {first + 3, first + 8});
    EXPECT_TRUE(watch.has_heard(4));
    told += watch.look(false).size();
    EXPECT_FALSE(watch.has_heard(1));
  }
  EXPECT_EQ(told, 1u);
  ASSERT_THAT(watch.slow(), SizeIs(1));
  EXPECT_EQ(watch.slow()[0].step_us, 2000u);
}

TEST_F(SlowWatchTest, IsToldOfAnotherLoadByTheTimeWithoutACore) {
  make_steps(100);
  usual[3][computing] += 100'000;
  change = [this](std::size_t rank, Own&) {
    if (rank == 3) stats[3].counters.core_wait_us += 95'000;
  };
  const auto told = make_steps(60);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].cause, SlowCause::host_load);
  EXPECT_EQ(to_string(told[0]),
            "rank 3 holds up the others in each step (192 ms): other processes have the cores of its host; "
            "waiting for one takes 95 ms, and the others 0 us");
}

TEST_F(SlowWatchTest, NamesTheWorkOfWhoWorksMoreWhereAllLackCoresALittle) {
  for (Own& own : usual) own[computing] = 10'000, own[reading] = 0;
  change = [this](std::size_t rank, Own& own) {
    stats[rank].counters.core_wait_us += own[computing] * 6 / 10;
  };
  make_steps(400);
  usual[3][computing] += 200'000;
  const auto told = make_steps(60);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].rank, 3u);
  EXPECT_EQ(told[0].cause, SlowCause::computing);
}

TEST_F(SlowWatchTest, IsSilentWhereStepsDifferByNature) {
  std::mt19937 random(7);
  std::uniform_int_distribution<std::uint64_t> any(20'000, 200'000);
  change = [&](std::size_t, Own& own) { own[computing] = any(random); };
  for (const std::size_t some : {2u, 3u, 4u}) {
    ranks = some;
    watch.clear();
    EXPECT_THAT(make_steps(24'000), IsEmpty()) << some << " ranks, ten minutes of steps of 25 ms";
  }
}

TEST_F(SlowWatchTest, IsSilentWhereAllLackCores) {
  std::mt19937 random(11);
  std::exponential_distribution<double> any(1 / 120'000.0);
  change = [&](std::size_t rank, Own& own) {
    const auto lack = static_cast<std::uint64_t>(any(random));
    own[computing] += lack;
    stats[rank].counters.core_wait_us += lack;
  };
  EXPECT_THAT(make_steps(6000), IsEmpty());
}

TEST_F(SlowWatchTest, ComparesTheRanksOfOneStage) {
  for (std::size_t rank = 0; rank < ranks; ++rank) stats[rank].stage = static_cast<std::uint32_t>(rank % 2);
  usual[1][computing] = usual[3][computing] = 300'000;  // the heavier half of the network
  EXPECT_THAT(make_steps(200), IsEmpty());
  usual[3][computing] = 600'000;
  const auto told = make_steps(100);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].rank, 3u);
}

TEST_F(SlowWatchTest, FindsASlowNetworkByItsHeartbeats) {
  for (Own& own : usual) own[computing] = 40'000;
  change = [this](std::size_t rank, Own&) {
    stats[rank].round_trip_us = (rank == 1 ? 40'000 : 200) + step % 7;
    stats[rank].counters.waiting_us += 80'000;  // all of them, in the same call
  };
  const auto told = make_steps(100);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].rank, 1u);
  EXPECT_EQ(told[0].cause, SlowCause::network);
  EXPECT_THAT(to_string(told[0]), HasSubstr("an answer of the scheduler takes 40 ms, and the others 20"));
}

TEST_F(SlowWatchTest, BlamesNoNetworkWhereThereIsNoneNorWhoHasNoCore) {
  change = [this](std::size_t rank, Own&) {
    stats[rank].round_trip_us = (rank == 1 ? 40'000 : 200) + step % 7;
    stats[rank].counters.waiting_us += 80'000;
    stats[rank].counters.core_wait_us += 60'000;
  };
  EXPECT_THAT(make_steps(100), IsEmpty()) << "its process is late, not its network";
  change = nullptr;
  for (int i = 0; i < 100; ++i) {
    stats[1].round_trip_us = 40'000u + static_cast<unsigned>(i) % 7;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      stats[rank].counters.waiting_us += 80'000;
      stats[rank].marks = {{++step, stats[rank].counters}};
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      stats[rank].marks[0].step = step;
      watch.hear(rank, stats[rank]);
    }
    EXPECT_THAT(watch.look(false), IsEmpty());
  }
}

TEST_F(SlowWatchTest, BeginsAnewWithOtherWorkersOrSteps) {
  make_steps(100);
  usual[2][reading] += 100'000;
  make_steps(10);
  step = 3;  // back at a recovery point
  look();
  EXPECT_THAT(make_steps(10), IsEmpty()) << "what was before does not count";
}

}  // namespace slow_watch_test
}  // namespace
}  // namespace muster::cluster
