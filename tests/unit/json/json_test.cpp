#include "muster/json/json.h"

#include <gmock/gmock.h>

#include "tests/unit/base/mentions.h"

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
  EXPECT_THAT(refusal("[[[]]]", {.depth = 2}), Mentions("x", "deeply"));
  EXPECT_EQ(refusal("[1,2]", {.values = 3}), "taken");
  EXPECT_THAT(refusal("[1,2]", {.values = 2}), Mentions("x", "2 values"));
  EXPECT_EQ(refusal("[1,2]", {.bytes = 5}), "taken");
  EXPECT_THAT(refusal("[1,2]", {.bytes = 4}), Mentions("x", "5 bytes", "have 4"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), Mentions("x", "deeply"));
}

TEST(Json, SaysWhereItIsWrong) {
  EXPECT_THAT(refusal(""), Mentions("x", "JSON", "line 1", "column 1"));
  EXPECT_THAT(refusal("{\n \"a\": 1\n \"b\"}"), Mentions("x", "JSON", "line 3", "column 4"));
  EXPECT_THAT(refusal("\xff\xfe"), Mentions("x", "JSON", "line 1", "column 1"));
  EXPECT_THAT(refusal("[1e999]"), Mentions("x", "large", "line 1", "column 6"));
  EXPECT_THAT(refusal(R"({"a": 1, "b": {"a": 2, "a": 3}})"), Mentions("x", "'a'", "twice"));
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
  EXPECT_THAT(to_text("\xff", "the name of a tensor").error().message, Mentions("name", "UTF-8"));
}

}  // namespace
}  // namespace muster::json
