#include "muster/base/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(Printable, LeavesWordsOfAnyLanguageAsTheyAre) {
  for (const std::string text :
       {"", "node-7 at [fe80::1%eth0]:8118", "C:\\temp", "ärger", "訓練", "🙂", "naïve ~"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatMovesTheCursorOrTurnsTheText) {
  EXPECT_EQ(printable("red\x1b[31m"), "red\\x1b[31m");
  EXPECT_EQ(printable("a\nb\tc\rd\x7f"), "a\\nb\\tc\\x0dd\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\u009b31m"), "\\x9b31m") << "C1, as two bytes";
  EXPECT_EQ(printable("user\u202etxt.exe\u2066"), "user\\u202etxt.exe\\u2066");
  EXPECT_EQ(printable("line\u2028line\u200f"), "line\\u2028line\\u200f");
}

TEST(Printable, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m")
      << "C1, as one byte";
  EXPECT_EQ(printable("\xc3"), "\\xc3");
  EXPECT_EQ(printable("\xc3("), "\\xc3(");
  EXPECT_EQ(printable("\xc0\x8a"), "\\xc0\\x8a") << "a line break, too long";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Printable, KeepsLineBreaksWhereThatIsAskedFor) {
  EXPECT_EQ(printable("a\n  b\x1b", LineBreaks::kept), "a\n  b\\x1b");
}

TEST(Printable, ChangesNothingTheSecondTime) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string once = printable(all);
  EXPECT_EQ(printable(once), once);
  for (std::size_t limit = 0; limit < once.size(); ++limit) {
    const std::string part(cut(once, limit));
    EXPECT_EQ(printable(part), part);
  }
}

}  // namespace
}  // namespace muster
