#include "muster/launch/last_lines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace muster::launch {
namespace {
namespace last_lines_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::SizeIs;

const std::string headline = "Traceback (most recent call last):";

void add(LastLines& last, int count, const std::string& text) {
  for (int i = 0; i < count; ++i) last.add(fmt::format("{} {}", text, i));
}

TEST(LastLines, KeepsTheLastThirty) {
  LastLines last;
  EXPECT_TRUE(last.empty());
  add(last, 100, "line");
  EXPECT_THAT(last.lines(), SizeIs(30));
  EXPECT_THAT(last.lines().front(), Eq("line 70"));
}

TEST(LastLines, KeepsATracebackWhole) {
  LastLines last;
  add(last, 100, "before");
  last.add(headline);
  add(last, 60, "  frame");
  last.add("ValueError: no");
  add(last, 29, "after");
  EXPECT_THAT(last.lines(), SizeIs(1 + 60 + 1 + 29));
  EXPECT_THAT(last.lines().front(), Eq(headline));
  last.add("one more: it is not what the process ended with");
  EXPECT_THAT(last.lines(), SizeIs(30));
}

TEST(LastLines, ShowsThirtyLinesEvenWhenTheTracebackIsShorter) {
  LastLines last;
  add(last, 100, "before");
  last.add(headline);
  last.add("ValueError: no");
  EXPECT_THAT(last.lines(), SizeIs(30));
}

TEST(LastLines, KeepsTheExceptionsThatATracebackComesFrom) {
  LastLines last;
  last.add(headline);
  add(last, 40, "  first");
  last.add("KeyError: 'a'");
  last.add("");
  last.add("During handling of the above exception, another exception occurred:");
  last.add("");
  last.add(headline);
  add(last, 40, "  second");
  last.add("ValueError: no");
  EXPECT_THAT(last.lines(), AllOf(SizeIs(1 + 40 + 4 + 1 + 40 + 1), Contains("  first 0")));
}

TEST(LastLines, ForgetsATracebackThatHasNothingToDoWithTheNext) {
  LastLines last;
  last.add(headline);
  add(last, 40, "  first");
  last.add("KeyError: 'a'");
  last.add(headline);
  add(last, 40, "  second");
  last.add("ValueError: no");
  EXPECT_THAT(last.lines().front(), Eq(headline));
  EXPECT_THAT(last.lines(), SizeIs(42));
}

TEST(LastLines, LeavesOutTheMiddleOfAnEndlessTraceback) {
  LastLines last;
  last.add(headline);
  add(last, 5000, "  frame");
  last.add("RecursionError: too deep");
  const auto lines = last.lines();
  EXPECT_THAT(lines, SizeIs(LastLines::traceback_lines_max + 1));
  EXPECT_THAT(lines.front(), Eq(headline));
  EXPECT_THAT(lines.back(), Eq("RecursionError: too deep"));
  EXPECT_THAT(lines[500], Eq("... 4002 lines are left out; the log has them ..."));
  EXPECT_THAT(lines[499], Eq("  frame 498"));
}

TEST(LastLines, CutsALongLine) {
  LastLines last;
  last.add(std::string(100'000, 'x'));
  EXPECT_THAT(last.lines(), ElementsAre(SizeIs(LastLines::line_size_max)));
}

}  // namespace last_lines_test
}  // namespace
}  // namespace muster::launch
