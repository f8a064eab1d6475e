#include "muster/train/activity_scope.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>

namespace muster::train {
namespace {

using cluster::WorkPhase;

WorkPhase phase_now() { return activity_of_main_thread().phase; }

void on_another_thread(const std::function<void()>& work) { std::thread(work).join(); }

TEST(ActivityScope, OfAnotherThreadLeavesNothingBehind) {
  lead_activity();
  const WorkPhase before = phase_now();
  std::unique_ptr<ActivityScope> ahead;
  {
    const ActivityScope reading(WorkPhase::reading_data);
    on_another_thread([&] { ahead = std::make_unique<ActivityScope>(WorkPhase::saving); });
    EXPECT_EQ(phase_now(), WorkPhase::reading_data);
  }
  EXPECT_EQ(phase_now(), before);
  on_another_thread([&] { ahead.reset(); });  // it began while the main thread was reading
  EXPECT_EQ(phase_now(), before);
}

TEST(ActivityScope, IsOfTheThreadThatLeads) {
  lead_activity();
  const WorkPhase before = phase_now();
  on_another_thread([&] {
    lead_activity();
    const ActivityScope saving(WorkPhase::saving);
    EXPECT_EQ(phase_now(), WorkPhase::saving);
  });
  EXPECT_EQ(phase_now(), before);
  lead_activity();
}

}  // namespace
}  // namespace muster::train
