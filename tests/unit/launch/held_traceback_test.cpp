#include "muster/launch/held_traceback.h"

#include <gmock/gmock.h>

namespace muster::launch {
namespace {
namespace held_traceback_test {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::Optional;
using namespace std::chrono_literals;

const std::string headline(traceback_headline);

TEST(HeldTraceback, KeepsAllFromTheFirstLineOfATracebackOn) {
  HeldTraceback held;
  EXPECT_FALSE(held.take("loading", TimePoint{}));
  EXPECT_TRUE(held.take(headline, TimePoint{}));
  EXPECT_TRUE(held.take("ValueError: no", TimePoint{} + 1s));
  EXPECT_THAT(held.due(), Optional(TimePoint{} + HeldTraceback::hold_max));
  EXPECT_THAT(held.release(), ElementsAre(headline, "ValueError: no"));
  EXPECT_THAT(held.due(), Eq(std::nullopt));
  EXPECT_FALSE(held.take("going on", TimePoint{} + 2s));
  EXPECT_THAT(held.lines(), IsEmpty());
}

TEST(HeldTraceback, HasALimit) {
  HeldTraceback held;
  held.take(headline, TimePoint{});
  for (std::size_t i = 1; i < HeldTraceback::lines_max; ++i) EXPECT_TRUE(held.take("  frame", TimePoint{}));
  EXPECT_FALSE(held.take("  frame", TimePoint{}));
  EXPECT_THAT(held.due(), Optional(TimePoint{}));
}

TEST(HeldTraceback, TellsWhatAnotherFailureOrCtrlCBrought) {
  const std::string other = "muster.JobAbortedError: worker 1 failed: ValueError: no";
  EXPECT_THAT(other_failure({headline, "  frame", other}), Optional(other));
  EXPECT_THAT(other_failure({headline, "  frame", "ValueError: muster.JobAbortedError:"}), Eq(std::nullopt));
  EXPECT_TRUE(is_of_interrupt({headline, "  frame", "KeyboardInterrupt"}));
  EXPECT_FALSE(is_of_interrupt({headline, "  raise KeyboardInterrupt", "ValueError: no"}));
}

}  // namespace held_traceback_test
}  // namespace
}  // namespace muster::launch
