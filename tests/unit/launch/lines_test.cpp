#include "muster/launch/lines.h"

#include <gmock/gmock.h>

#include <vector>

namespace muster::launch {
namespace {
namespace lines_test {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::IsEmpty;

std::vector<std::string> feed(LineBuffer& buffer, std::string_view bytes) {
  std::vector<std::string> lines;
  buffer.feed(bytes, [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

TEST(LineBuffer, CutsBytesIntoLines) {
  LineBuffer buffer;
  EXPECT_THAT(feed(buffer, "one\ntwo\n\nthr"), ElementsAre("one", "two", ""));
  EXPECT_THAT(buffer.unfinished(), Eq("thr"));
  EXPECT_THAT(feed(buffer, "ee\n"), ElementsAre("three"));
  EXPECT_THAT(buffer.unfinished(), IsEmpty());
}

TEST(LineBuffer, KeepsWhatStandsThereAfterACarriageReturn) {
  LineBuffer buffer;
  EXPECT_THAT(feed(buffer, "10 %\r20 %"), IsEmpty());
  EXPECT_THAT(buffer.unfinished(), Eq("20 %"));
  EXPECT_THAT(feed(buffer, "\r"), IsEmpty());
  EXPECT_THAT(buffer.unfinished(), Eq("20 %"));
  EXPECT_THAT(feed(buffer, "30 %\n"), ElementsAre("30 %"));
}

TEST(LineBuffer, TakesCarriageReturnAndNewlineAsOneEnd) {
  LineBuffer buffer;
  EXPECT_THAT(feed(buffer, "one\r\ntwo\r"), ElementsAre("one"));
  EXPECT_THAT(feed(buffer, "\n"), ElementsAre("two"));
}

TEST(LineBuffer, CutsALineThatDoesNotEnd) {
  LineBuffer buffer;
  const auto lines = feed(buffer, std::string(LineBuffer::line_size_max + 1, 'a'));
  EXPECT_THAT(lines, ElementsAre(std::string(LineBuffer::line_size_max, 'a')));
  EXPECT_THAT(buffer.unfinished(), Eq("a"));
}

}  // namespace lines_test
}  // namespace
}  // namespace muster::launch
