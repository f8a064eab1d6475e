// A run ends between two ops when it is asked to, and then it has not happened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <vector>

#include "muster/graph/execution/rollback.h"
#include "muster/graph/graph.h"
#include "muster/graph/kernel.h"
#include "muster/graph/plan.h"

namespace muster::graph {
namespace {

int asked = 0;
int ends_at = -1;

Result<> ask() {
  if (++asked != ends_at) return {};
  return fail(Code::aborted, "ended from outside");
}

// The plan of `body` for an input float32 (32, 4).
template <class Body>
std::unique_ptr<Plan> plan_of(const Body& body) {
  const auto trace = Trace::begin("test");
  const Value input = trace->input({DType::float32, {32, 4}});
  Values outputs;
  {
    const Trace::Scope scope(*trace);
    outputs = body(input);
  }
  const Graph graph = trace->finish(outputs);
  return *Plan::compile(graph);
}

Tensor filled(const Shape& shape, float value) {
  Tensor made(DType::float32, shape);
  for (float& element : made.span<float>()) element = value;
  return made;
}

ParameterPtr parameter(const char* name, float value) {
  return std::make_shared<Parameter>(name, filled({4}, value));
}

// A training step of batch normalisation whose gamma is updated, and what it writes.
class Step : public ::testing::Test {
 protected:
  void SetUp() override {
    asked = 0;
    ends_at = -1;
    plan_ = plan_of([this](const Value& x) -> Values {
      const Value inputs[] = {x, gamma_, beta_, mean_, variance_};
      const Value y = apply_all("batch_norm", inputs, {{"training", true}})[0];
      const Value loss = apply("exp", {apply("reduce_sum", {apply("tanh", {y})})});
      (void)apply("sgd",
                  {gamma_, apply("reduce_mean", {y}, {{"axes", std::vector<std::int64_t>{0}}}), rate_});
      (void)apply("sgd", {beta_, gamma_, rate_});
      return loss;
    });
  }

  Result<> run() {
    return plan_->run(std::vector{x_}, {.interrupted = &ask}).map([](const auto&) {});
  }
  std::vector<float> written() const {
    std::vector<float> all;
    for (const ParameterPtr& each : {gamma_, beta_, mean_, variance_})
      for (const float element : each->storage().span<float>()) all.push_back(element);
    return all;
  }

  const ParameterPtr gamma_ = parameter("gamma", 1), beta_ = parameter("beta", 0);
  const ParameterPtr mean_ = parameter("mean", 0), variance_ = parameter("variance", 1);
  const Tensor rate_ = Tensor::scalar(0.5F);
  const Tensor x_ = filled({32, 4}, 3);
  std::unique_ptr<Plan> plan_;
};

TEST_F(Step, IsAskedBetweenItsOpsUntilParametersAreUpdated) {
  ASSERT_TRUE(run());
  // batch_norm, tanh, reduce_sum, exp, reduce_mean and the first sgd, but not the second one.
  EXPECT_EQ(asked, 6) << plan_->to_string();
}

TEST_F(Step, HasNotHappenedWhenItWasEnded) {
  const std::vector<float> before = written();
  for (int at = 1; at <= 6; ++at) {
    asked = 0;
    ends_at = at;
    const Result<> done = run();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "ended from outside");
    EXPECT_EQ(written(), before) << "ended at " << at;
  }
  ends_at = -1;
  ASSERT_TRUE(run());
  EXPECT_NE(written(), before);
}

TEST_F(Step, IsAskedOnceBeforeItsUpdatesWhetherItCounts) {
  ASSERT_TRUE(plan_->run(std::vector{x_}, {.commit = &ask}));
  EXPECT_EQ(asked, 1);
}

TEST_F(Step, HasUpdatedNothingWhereItDoesNotCount) {
  ASSERT_TRUE(run());
  const std::vector<float> gamma(gamma_->storage().span<float>().begin(),
                                 gamma_->storage().span<float>().end());
  asked = 0;
  ends_at = 1;
  const auto done = plan_->run(std::vector{x_}, {.commit = &ask});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "ended from outside");
  EXPECT_TRUE(std::equal(gamma.begin(), gamma.end(), gamma_->storage().span<float>().begin()));
}

TEST_F(Step, TellsStatisticsFromWeights) {
  ASSERT_TRUE(run());
  EXPECT_TRUE(mean_->is_statistic());
  EXPECT_TRUE(variance_->is_statistic());
  EXPECT_FALSE(gamma_->is_statistic());
}

TEST_F(Step, CannotBeEndedOnceParametersAreUpdated) {
  ends_at = 7;
  EXPECT_TRUE(run());
}

TEST_F(Step, HasNotHappenedWhenAnOpFailed) {
  const Tensor labels = Tensor::from<std::int32_t>(std::vector<std::int32_t>(32, 9), {32});
  plan_ = plan_of([&](const Value& x) -> Values {
    const Value inputs[] = {x, gamma_, beta_, mean_, variance_};
    const Value y = apply_all("batch_norm", inputs, {{"training", true}})[0];
    return apply("softmax_cross_entropy", {y, labels});
  });
  const std::vector<float> before = written();
  EXPECT_FALSE(run());
  EXPECT_EQ(written(), before);
}

TEST_F(Step, OfABranchCanBeEndedInside) {
  plan_ = plan_of([](const Value& x) -> Values {
    return cond(
        apply("greater", {apply("reduce_sum", {x}), Tensor::scalar(0.0F)}),
        [&]() -> Values { return apply("exp", {apply("tanh", {x})}); }, [&]() -> Values { return x; });
  });
  ASSERT_TRUE(run());
  EXPECT_GE(asked, 5) << plan_->to_string();  // reduce_sum, greater, cond, and both ops of the branch
  ends_at = asked;
  asked = 0;
  EXPECT_FALSE(run());
}

TEST(Interruption, IsNotAskedWhereACollectiveHasBegun) {
  asked = 0;
  ends_at = -1;
  const auto plan = plan_of(
      [](const Value& x) -> Values { return apply("exp", {apply("all_reduce", {apply("tanh", {x})})}); });
  ASSERT_TRUE(plan->run(std::vector{filled({32, 4}, 1)}, {.interrupted = &ask}));
  EXPECT_EQ(asked, 2);  // before tanh and before all_reduce
}

// What an update writes is as large as what it reads: that is no state to keep at each run.
TEST(Rollback, EndsBeforeWhatOnlyWrites) {
  Graph graph;
  graph.values = {{DType::float32, {4}}, {DType::float32, {4}}};
  const Op update{.name = "update", .documentation = "", .kernels = {}, .written = {0}};
  Rollback rollback;
  const Node node{.op = &update, .inputs = {0, 1}, .outputs = {}, .attributes = {}};
  std::byte* addresses[2] = {};
  rollback.add_step(node, graph, addresses);
  rollback.add_step(node, graph, addresses);
  EXPECT_TRUE(rollback.covers(0));
  EXPECT_FALSE(rollback.covers(1));
}

}  // namespace
}  // namespace muster::graph
