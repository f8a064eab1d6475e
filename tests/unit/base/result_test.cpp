#include "muster/base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/unit/base/error_of.h"

namespace muster {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return fail(Code::invalid_argument, "an odd number");
  return number / 2;
}

TEST(Result, OfABoolIsNotTheAnswerWhetherAnotherOneIsGood) {
  const Result<bool> no = false;
  EXPECT_TRUE(no);
  EXPECT_FALSE(*no);
}

TEST(Result, TakesWhatConvertsToItsValue) {
  const Result<std::string> text = "text";
  EXPECT_EQ(*text, "text");
  const Result<std::optional<std::string>> optional = text;
  EXPECT_EQ(*optional, "text");
  const Result<std::shared_ptr<const int>> pointer = std::make_unique<int>(3);
  EXPECT_EQ(**pointer, 3);
}

TEST(Result, GivesItsValueOrThrowsItsError) {
  EXPECT_EQ(half(4).value(), 2);
  EXPECT_EQ(ERROR_OF(half(3).value()), "an odd number");
  EXPECT_EQ(ERROR_OF(Result<>(fail(Code::io, "full")).value()), "full");
}

TEST(Result, PassesItsErrorOverWhatWouldComeNext) {
  EXPECT_EQ(*half(8).and_then(half).map([](int number) { return number + 1; }), 3);
  EXPECT_EQ(half(6).and_then(half).error().message, "an odd number");
  const auto explained = half(1).map_error([](Error error) {
    error.message = "x: " + error.message;
    return error;
  });
  EXPECT_EQ(explained.error().message, "x: an odd number");
}

TEST(CatchError, GivesWhatIsThrownAsAResult) {
  EXPECT_EQ(*catch_error([] { return 3; }), 3);
  const Result<int> failed = catch_error([] { return half(1).value(); });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::invalid_argument);
  EXPECT_TRUE(catch_error([] {}));
}

TEST(CatchError, GivesTheResultThatACallableReturnsAsItIs) {
  const Result<int> good = catch_error([] { return half(4); });
  EXPECT_EQ(*good, 2);
  const Result<int> returned = catch_error([] { return half(1); });
  const Result<int> thrown = catch_error([] { return half(half(1).value()); });
  const Result<> nothing = catch_error([] { return Result<>(fail(Code::io, "full")); });
  EXPECT_EQ(returned.error().code, Code::invalid_argument);
  EXPECT_EQ(thrown.error().code, Code::invalid_argument);
  EXPECT_EQ(nothing.error().code, Code::io);
}

}  // namespace
}  // namespace muster
