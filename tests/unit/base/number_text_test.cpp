#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "muster/base/base.h"

namespace muster {
namespace {

TEST(NumberText, PrintsTheFewestDigitsThatReadBackAsTheSameFloat) {
  EXPECT_EQ(number_text(2.3499548f), "2.3499548");
  EXPECT_EQ(number_text(0.1f), "0.1");
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(static_cast<double>(0.1f)), "0.10000000149011612");
}

TEST(NumberText, KeepsOneDigitBehindThePointOfWholeNumbers) {
  EXPECT_EQ(number_text(2.0f), "2.0");
  EXPECT_EQ(number_text(-0.0f), "-0.0");
  EXPECT_EQ(number_text(999999.0f), "999999.0");
  EXPECT_EQ(number_text(1234567890.0), "1234567890.0");
  EXPECT_EQ(number_text(1e15), "1000000000000000.0");
}

TEST(NumberText, TurnsScientificOutsideOfTheRangeInWhichNumpyIsPositional) {
  EXPECT_EQ(number_text(1e-4), "0.0001");
  EXPECT_EQ(number_text(1e-4f), "1e-04");  // the float is a little smaller than the decimal
  EXPECT_EQ(number_text(1e-5f), "1e-05");
  EXPECT_EQ(number_text(1.5e-7f), "1.5e-07");
  EXPECT_EQ(number_text(1e16), "1e+16");
  EXPECT_EQ(number_text(1234567.0f), "1.234567e+06");
  EXPECT_EQ(number_text(1e100), "1e+100");
}

TEST(NumberText, NamesWhatIsNoNumber) {
  EXPECT_EQ(number_text(std::nanf("")), "nan");
  EXPECT_EQ(number_text(-std::numeric_limits<float>::infinity()), "-inf");
}

}  // namespace
}  // namespace muster
