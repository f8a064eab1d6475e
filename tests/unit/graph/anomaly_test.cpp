// Numbers that are none, and where they come from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "muster/graph/graph.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::graph {
namespace {

class Detecting {
 public:
  Detecting() { set_anomaly_detection(true); }
  ~Detecting() { set_anomaly_detection(false); }
};

Tensor vector_of(std::vector<float> values) {
  return Tensor::from<float>(values, {static_cast<std::int64_t>(values.size())});
}

Values log_of(std::span<const Value> inputs) { return apply("log", {inputs[0]}); }

TEST(Anomaly, EndsTheRunOfAPlanWithTheOpAndTheElement) {
  Function function("net", log_of);
  const std::vector<Value> inputs{vector_of({1, -1, 0})};
  EXPECT_EQ(function(inputs).size(), 1u);
  const Detecting detecting;
  const auto error = ERROR_OF(function(inputs));
  EXPECT_THAT(error, Mentions("log, forward", "1 NaN and 1 infinite of 3 elements", "the first at (1,)",
                              "from -1 to 1"));
}

TEST(Anomaly, IsLookedForOnlyWhereItIsAskedFor) {
  Function function("net", log_of);
  const std::vector<Value> inputs{vector_of({-1})};
  {
    const Detecting detecting;
    EXPECT_THAT(ERROR_OF(function(inputs)), Mentions("log"));
  }
  EXPECT_EQ(function(inputs).size(), 1u);
}

TEST(Anomaly, IsFoundOpByOpToo) {
  const Detecting detecting;
  const auto error = ERROR_OF(apply("log", {vector_of({-1})}));
  EXPECT_THAT(error, Mentions("log, forward", "1 NaN of 1 elements"));
}

TEST(Anomaly, IsNoInfinityThatWasGiven) {
  const Detecting detecting;
  Function function("net", [](std::span<const Value> inputs) -> Values {
    return apply("add", {inputs[0], inputs[0]});
  });
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(function(std::vector<Value>{vector_of({infinity})}).size(), 1u);
}

TEST(Anomaly, ThatCameWithAnInputIsNamedAsThat) {
  const Detecting detecting;
  Function function("net", [](std::span<const Value> inputs) -> Values {
    return apply("add", {inputs[0], inputs[0]});
  });
  const float none = std::numeric_limits<float>::quiet_NaN();
  const auto error = ERROR_OF(function(std::vector<Value>{vector_of({1, none})}));
  EXPECT_THAT(error, Mentions("add, forward", "the first at (1,)", "input 0 of 'net'"));
}

TEST(Anomaly, LeavesTheParametersOfARunThatEndsBeforeTheUpdate) {
  const Detecting detecting;
  const auto weight = std::make_shared<Parameter>("w", vector_of({-1}));
  Function function("step", [&](std::span<const Value>) -> Values {
    const Value gradient = apply("log", {weight});
    return apply("assign", {weight, gradient});
  });
  EXPECT_THAT(ERROR_OF(function({})), Mentions("log"));
  EXPECT_EQ(weight->storage().item<float>(), -1.F);
}

}  // namespace
}  // namespace muster::graph
