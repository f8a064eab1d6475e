#include <gtest/gtest.h>

#include "muster/base/base.h"

namespace muster {
namespace {
namespace value_test {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(Code::invalid_argument, "odd");
  return value / 2;
}

Result<int> quarter(int value) {
  MUSTER_TRY(const int first, half(value));
  MUSTER_TRY(const int second, half(first));
  return second;
}

TEST(Result, PassesTheFirstErrorToTheCaller) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_EQ(quarter(6).error().code, Code::invalid_argument);
}

TEST(DType, IsFoundByTheNameItPrints) {
  for (const DType dtype : all_dtypes) EXPECT_EQ(dtype_from_string(to_string(dtype)), dtype);
  EXPECT_FALSE(dtype_from_string("float33"));
}

TEST(Shape, PrintsAsAPythonTuple) {
  EXPECT_EQ(to_string(Shape{}), "()");
  EXPECT_EQ(to_string(Shape{7}), "(7,)");
  EXPECT_EQ(to_string(Shape{32, 10}), "(32, 10)");
  EXPECT_EQ((Shape{32, 10}).elements(), 320);
  EXPECT_EQ(Shape{}.elements(), 1);
}

TEST(ManualClock, MovesOnlyWhenTold) {
  ManualClock clock;
  const TimePoint begin = clock.now();
  EXPECT_EQ(clock.now(), begin);
  clock.advance(std::chrono::seconds(3));
  EXPECT_EQ(clock.now() - begin, std::chrono::seconds(3));
}

TEST(FixedEnvironment, HasItsValuesAndNoOthers) {
  const FixedEnvironment environment({{"MS_ROLE", "MS_WORKER"}, {"MS_NODE_ID", "7"}, {"PATH", "/bin"}});
  EXPECT_EQ(environment.get("MS_ROLE"), "MS_WORKER");
  EXPECT_FALSE(environment.get("MS_SCHED_HOST"));
  EXPECT_EQ(environment.names("MS_"), (std::vector<std::string>{"MS_NODE_ID", "MS_ROLE"}));
}

TEST(Hash, ChangesWithEveryByteAndWithTheSeed) {
  EXPECT_EQ(hash_text("fc.weight"), hash_text("fc.weight"));
  EXPECT_NE(hash_text("fc.weight"), hash_text("fc.weighs"));
  EXPECT_NE(hash_text("fc.weight", 1), hash_text("fc.weight", 2));
}

TEST(Hash, OfPiecesIsThatOfTheWhole) {
  const std::string text(100'000, 'x');
  Hasher hasher;
  for (std::size_t at = 0; at < text.size(); at += 333)
    hasher.add(std::as_bytes(std::span(text)).subspan(at, std::min<std::size_t>(333, text.size() - at)));
  EXPECT_EQ(hasher.hash(), hash_text(text));
}

}  // namespace value_test
}  // namespace
}  // namespace muster
