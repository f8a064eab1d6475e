#include "muster/launch/repeated_warnings.h"

#include <gmock/gmock.h>

namespace muster::launch {
namespace {

const std::string warning = "/a/train.py:5: UserWarning: be careful";
const std::string source = "  warnings.warn('be careful')";

TEST(RepeatedWarnings, AreThoseOfPythonWithTheirSource) {
  RepeatedWarnings repeated;
  EXPECT_FALSE(repeated.has(0, warning));
  EXPECT_FALSE(repeated.has(0, source));
  EXPECT_TRUE(repeated.has(1, warning));
  EXPECT_TRUE(repeated.has(1, source));
  EXPECT_FALSE(repeated.has(1, source)) << "only the line right below it belongs to it";
  EXPECT_TRUE(repeated.has(2, warning));
  EXPECT_FALSE(repeated.has(2, "the next line"));
}

TEST(RepeatedWarnings, AreThoseOfMusterWhoeverSaysThem) {
  RepeatedWarnings repeated;
  EXPECT_FALSE(repeated.has(0, "muster[worker 0] warning: slow"));
  EXPECT_TRUE(repeated.has(1, "muster[worker 1] warning: slow"));
  EXPECT_FALSE(repeated.has(1, "muster[worker 1] error: slow"));
  EXPECT_FALSE(repeated.has(0, "muster warning: of nobody"));
  EXPECT_TRUE(repeated.has(1, "muster warning: of nobody"));
}

TEST(RepeatedWarnings, AreNotThoseThatDifferOrComeAgainFromOneProcess) {
  RepeatedWarnings repeated;
  EXPECT_FALSE(repeated.has(0, warning));
  EXPECT_FALSE(repeated.has(0, warning));
  EXPECT_FALSE(repeated.has(1, "/a/train.py:5: UserWarning: be careful of rank 1"));
}

TEST(RepeatedWarnings, AreNoOtherLines) {
  RepeatedWarnings repeated;
  for (const char* const line :
       {"", "epoch 1 done", "Warning: x", "a:b: UserWarning: x", "  x:1: Warning: x"})
    for (const std::size_t process : {0, 1}) EXPECT_FALSE(repeated.has(process, line)) << line;
}

}  // namespace
}  // namespace muster::launch
