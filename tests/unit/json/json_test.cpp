#include "muster/json/json.h"

#include <gmock/gmock.h>

namespace muster::json {
namespace {

std::string refusal(std::string_view text, const Limits& limits = {}) {
  const auto parsed = parse(text, "x", limits);
  return parsed ? "taken" : parsed.error().message;
}

TEST(Json, IsWhatWasWritten) {
  const auto parsed = parse(R"({"a": [1, -2, 0.5, "t", true, null, {}], "b": {"a": []}})", "x");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->dump(), R"({"a":[1,-2,0.5,"t",true,null,{}],"b":{"a":[]}})");
}

TEST(Json, StopsAtItsLimits) {
  EXPECT_EQ(refusal("[[[]]]", {.depth = 3}), "taken");
  EXPECT_EQ(refusal("[[[]]]", {.depth = 2}), "x: it is nested too deeply");
  EXPECT_EQ(refusal("[1,2]", {.values = 3}), "taken");
  EXPECT_EQ(refusal("[1,2]", {.values = 2}), "x: it has more than 2 values");
  EXPECT_EQ(refusal("[1,2]", {.bytes = 5}), "taken");
  EXPECT_EQ(refusal("[1,2]", {.bytes = 4}), "x: it has 5 bytes, and may have 4 at most");
  EXPECT_EQ(refusal(std::string(100'000, '[')), "x: it is nested too deeply");
}

TEST(Json, SaysWhereItIsWrong) {
  EXPECT_EQ(refusal(""), "x: it is no JSON: line 1, column 1");
  EXPECT_EQ(refusal("{\n \"a\": 1\n \"b\"}"), "x: it is no JSON: line 3, column 4");
  EXPECT_EQ(refusal("\xff\xfe"), "x: it is no JSON: line 1, column 1");
  EXPECT_EQ(refusal("[1e999]"), "x: it has a number that is too large: line 1, column 6");
  EXPECT_EQ(refusal(R"({"a": 1, "b": {"a": 2, "a": 3}})"), "x: 'a' is there twice in one object");
}

TEST(Json, HasTheCodeThatTheReaderWants) {
  EXPECT_EQ(parse("{", "x").error().code, Code::invalid_argument);
  EXPECT_EQ(parse("{", "x", {.code = Code::corrupt}).error().code, Code::corrupt);
}

TEST(Json, OfManyObjectsTakesNoLongerThanItsLength) {
  std::string text = "[{}";
  for (int i = 0; i < 300'000; ++i) text += ",{}";
  EXPECT_EQ(refusal(text + "]"), "taken");
}

TEST(Json, IsWrittenOnOneLineAndInUtf8Only) {
  EXPECT_EQ(to_text({{"b", "1\n2"}, {"a", 1}}, "it").value(), R"({"a":1,"b":"1\n2"})");
  EXPECT_EQ(to_text("\xff", "the name of a tensor").error().message, "the name of a tensor is no UTF-8");
}

}  // namespace
}  // namespace muster::json
