#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "muster/nn/nn.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::nn {
namespace {
namespace optimizers_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const std::vector<ParameterPtr>& parameters) {
  std::vector<std::string> found;
  for (const ParameterPtr& parameter : parameters) found.push_back(parameter->name());
  return found;
}

Tensor vector(std::initializer_list<float> values) {
  return Tensor::from<float>(std::vector<float>(values), {static_cast<std::int64_t>(values.size())});
}

ParameterPtr weight(std::string name, std::initializer_list<float> values) {
  return std::make_shared<graph::Parameter>(std::move(name), vector(values));
}

float first(const ParameterPtr& parameter) { return parameter->storage().data<float>()[0]; }

void step(Optimizer& optimizer, std::vector<Value> gradients) { optimizer.call(gradients); }

std::string failure(Optimizer& optimizer, std::vector<Value> gradients) {
  return ERROR_OF(optimizer.call(gradients));
}

TEST(Optimizer, OfNoParametersIsRefused) {
  EXPECT_THAT(ERROR_OF(SGD(std::vector<ParameterPtr>{}, {.learning_rate = 0.1})),
              Mentions("SGD", "no parameters", "trainable_params()"));
  EXPECT_THAT(ERROR_OF(SGD(ParameterGroups(std::vector<ParameterGroup>(1)), {.learning_rate = 0.1})),
              Mentions("one of the groups"));
}

TEST(Optimizers, KeepTheirStateInNamedParameters) {
  const auto fc = weight("fc.weight", {1});
  EXPECT_THAT(names(SGD({fc}).parameters()), ElementsAre("learning_rate", "global_step"));
  EXPECT_THAT(names(SGD({fc}, {.momentum = 0.9}).parameters()),
              ElementsAre("learning_rate", "global_step", "accum.fc.weight", "stat.fc.weight"));
  EXPECT_THAT(names(Momentum({fc}).parameters()),
              ElementsAre("learning_rate", "global_step", "moments.fc.weight"));
  EXPECT_THAT(names(Adam({fc}, {.use_amsgrad = true}).parameters()),
              ElementsAre("learning_rate", "global_step", "moment1.fc.weight", "moment2.fc.weight",
                          "vhat.fc.weight"));
  EXPECT_TRUE(Adam({fc}).trainable_params().empty());
}

TEST(Optimizers, ANewLearningRateNeedsNoNewTrace) {
  const auto p = weight("weight", {1});
  SGD sgd({p}, {.learning_rate = 0.5});
  const std::uint64_t version = sgd.tree_version();
  step(sgd, {vector({1})});
  EXPECT_EQ(first(p), 0.5f);
  ASSERT_TRUE(sgd.set_learning_rate(0.25));
  step(sgd, {vector({1})});
  EXPECT_EQ(first(p), 0.25f);
  EXPECT_EQ(sgd.tree_version(), version);
  EXPECT_EQ(sgd.global_step()->storage().data<std::int32_t>()[0], 2);
}

TEST(Optimizers, MomentumGathersSpeed) {
  const auto p = weight("weight", {1});
  Momentum momentum({p}, {.learning_rate = 0.1, .momentum = 0.5});
  for (const float expected : {0.9f, 0.75f, 0.575f}) {
    step(momentum, {vector({1})});
    EXPECT_NEAR(first(p), expected, 1e-6f);
  }
}

TEST(Optimizers, CountTheirGradients) {
  SGD sgd({weight("a", {1}), weight("b", {1})});
  EXPECT_THAT(failure(sgd, {vector({1})}), Mentions("SGD", "updates", "2 parameters", "1 gradients"));
}

TEST(Optimizers, TakeTheRateOfEachStepFromAList) {
  const auto p = weight("weight", {0});
  SGD sgd({p}, {.learning_rate = Rates{1, 10}});
  step(sgd, {vector({-1})});
  step(sgd, {vector({-1})});
  EXPECT_EQ(first(p), 11);
  EXPECT_THAT(failure(sgd, {vector({-1})}), Mentions("2 learning", "rates", "step 2"));
  EXPECT_EQ(first(p), 11);
  EXPECT_THAT(sgd.set_learning_rate(1).error().message, Mentions("number", "step"));
}

TEST(Optimizers, TakeTheRateFromAScheduleOfTheStep) {
  const auto p = weight("weight", {0});
  SGD sgd({p}, {.learning_rate = std::make_shared<WarmUpLR>(WarmUpOptions{0.5, 2})});
  std::vector<float> seen;
  for (int i = 0; i < 4; ++i) {
    step(sgd, {vector({-1})});
    seen.push_back(first(p));
  }
  EXPECT_THAT(seen, ElementsAre(0, 0.25, 0.75, 1.25));
}

TEST(Optimizers, AScheduleMustGiveOneNumber) {
  class Pair : public LearningRateSchedule {
   public:
    Values construct(std::span<const Value>) override { return Value(vector({1, 2})); }
  };
  SGD sgd({weight("weight", {0})}, {.learning_rate = std::make_shared<Pair>()});
  EXPECT_THAT(failure(sgd, {vector({1})}), Mentions("give", "(2,)"));
}

TEST(Optimizers, DecayLeavesOutBetaAndGammaUnlessTheyAreInAGroup) {
  const auto fc = weight("fc.weight", {1}), gamma = weight("bn.gamma", {1}), beta = weight("bn.beta", {1});
  SGD sgd({fc, gamma, beta}, {.learning_rate = 1, .weight_decay = 0.5});
  step(sgd, {vector({0}), vector({0}), vector({0})});
  EXPECT_EQ(first(fc), 0.5f);
  EXPECT_EQ(first(gamma), 1);
  EXPECT_EQ(first(beta), 1);
  SGD grouped(ParameterGroups(std::vector<ParameterGroup>{{.parameters = {fc, gamma, beta}}}),
              {.learning_rate = 1, .weight_decay = 0.5});
  step(grouped, {vector({0}), vector({0}), vector({0})});
  EXPECT_EQ(first(fc), 0.25f);
  EXPECT_EQ(first(gamma), 0.5f);
}

TEST(Optimizers, GroupsHaveRatesAndDecaysOfTheirOwn) {
  const auto a = weight("a", {1}), b = weight("b", {1}), c = weight("c", {1});
  SGD sgd(ParameterGroups({{.parameters = {a}, .learning_rate = 0.5, .weight_decay = 1.0},
                           {.parameters = {b}, .learning_rate = Rates{0.25, 0.125}},
                           {.parameters = {c}}},
                          {c, b, a}),
          {.learning_rate = 0.0625});
  EXPECT_THAT(names(sgd.updated_parameters()), ElementsAre("c", "b", "a"));
  EXPECT_THAT(names(sgd.parameters()),
              ElementsAre("learning_rate", "learning_rate_group_0", "learning_rate_group_1", "global_step"));
  step(sgd, {vector({1}), vector({1}), vector({0})});
  EXPECT_EQ(first(c), 0.9375f);
  EXPECT_EQ(first(b), 0.75f);
  EXPECT_EQ(first(a), 0.5f);
  EXPECT_THAT(sgd.set_learning_rate(1).error().message, HasSubstr("one for each group"));
}

TEST(Optimizers, OrderTakesEachParameterOfTheGroups) {
  const auto a = weight("a", {1}), b = weight("b", {1});
  EXPECT_THAT(ERROR_OF(SGD(ParameterGroups({{.parameters = {a}}}, {b}))),
              Mentions("order_params", "'b'", "group"));
  EXPECT_THAT(ERROR_OF(SGD(ParameterGroups({{.parameters = {a, b}}}, {b}))),
              Mentions("order_params", "1 parameters", "groups", "have 2"));
  EXPECT_THAT(ERROR_OF(SGD({a, a})), Mentions("'a'", "twice"));
}

// A decay that grows: 0 at the first step, then 0.5 for each.
class Growing : public Cell {
 public:
  Values construct(std::span<const Value> inputs) override {
    return ops::mul(ops::cast(inputs[0], DType::float32), Value(Tensor::scalar(0.5f)));
  }
};

TEST(Optimizers, DecayMayBeACellOfTheStep) {
  const auto p = weight("weight", {1}), q = weight("weight", {1});
  Momentum momentum(
      {p},
      {.learning_rate = 0.5, .momentum = 0, .weight_decay = std::make_shared<Growing>(), .loss_scale = 4});
  AdamWeightDecay adam({q}, {.learning_rate = 0.5, .weight_decay = std::make_shared<Growing>()});
  for (const float expected : {1.0f, 0.75f}) {
    step(momentum, {vector({0})});
    step(adam, {vector({0})});
    EXPECT_EQ(first(p), expected);
    EXPECT_EQ(first(q), expected);
  }
}

TEST(Optimizers, CentralizedGradientsHaveNoMean) {
  const auto p = std::make_shared<graph::Parameter>("conv", Tensor::zeros(DType::float32, {2, 16}));
  const auto bias = weight("bias", {0, 0});
  SGD sgd(
      ParameterGroups(std::vector<ParameterGroup>{{.parameters = {p, bias}, .grad_centralization = true}}),
      {.learning_rate = 1, .loss_scale = 2});
  Tensor gradient = Tensor::zeros(DType::float32, {2, 16});
  gradient.data<float>()[0] = 32;
  step(sgd, {gradient, vector({2, 2})});
  EXPECT_EQ(p->storage().data<float>()[0], -15);
  EXPECT_EQ(p->storage().data<float>()[1], 1);
  EXPECT_EQ(p->storage().data<float>()[16], 0);
  EXPECT_EQ(first(bias), -1);
}

TEST(Optimizers, AdamStepsAreAsLongAsTheRateAtFirst) {
  const auto p = weight("weight", {1, 1});
  Adam adam({p}, {.learning_rate = 0.125});
  step(adam, {vector({1000, -0.001f})});
  EXPECT_NEAR(p->storage().data<float>()[0], 0.875, 1e-5);
  EXPECT_NEAR(p->storage().data<float>()[1], 1.125, 1e-4);  // eps counts beside so small a gradient
}

TEST(Optimizers, LarsScalesWeightsAndLeavesBiases) {
  const auto p = weight("fc.weight", {3, 4}), bias = weight("fc.bias", {1});
  const auto sgd = std::make_shared<SGD>(
      ParameterGroups({p, bias}), SGDOptions{.learning_rate = 1, .weight_decay = 0.5, .loss_scale = 2});
  LARS lars(sgd, {.epsilon = 1e-8, .coefficient = 0.5});
  EXPECT_THAT(names(lars.updated_parameters()), ElementsAre("fc.weight", "fc.bias"));
  EXPECT_THAT(names(lars.parameters()), ElementsAre("learning_rate", "global_step"));
  step(lars, {vector({0, 4}), vector({2})});
  // |p| = 5, |g| = 2: r = 0.5 * 5 / (2 + 0.5 * 5)
  const double r = 2.5 / 4.5;
  EXPECT_NEAR(p->storage().data<float>()[0], 3 - r * 1.5, 1e-6);
  EXPECT_NEAR(p->storage().data<float>()[1], 4 - r * (2 + 2), 1e-6);
  EXPECT_NEAR(first(bias), 1 - 1, 1e-6);
  EXPECT_EQ(sgd->global_step()->storage().data<std::int32_t>()[0], 1);
}

TEST(Optimizers, SayWhichArgumentCannotBe) {
  const auto p = weight("weight", {1});
  EXPECT_THAT(ERROR_OF(SGD({p}, {.learning_rate = -1})), Mentions("SGD", "learning_rate", "least 0", "-1"));
  EXPECT_THAT(ERROR_OF(SGD({p}, {.nesterov = true})), Mentions("nesterov", "above 0", "dampening 0"));
  EXPECT_THAT(ERROR_OF(Adam({p}, {.beta1 = 1})), Mentions("Adam", "beta1", "(0, 1)", "not 1"));
  EXPECT_THAT(ERROR_OF(RMSProp({p}, {.epsilon = 0})), Mentions("RMSProp", "epsilon", "above 0", "not 0"));
  EXPECT_THAT(ERROR_OF(Momentum({p}, {.loss_scale = 0})),
              Mentions("Momentum", "loss_scale", "above 0", "not 0"));
  EXPECT_THAT(ERROR_OF(SGD({p}, {.learning_rate = std::make_shared<WarmUpLR>(WarmUpOptions{0.1, 0})})),
              Mentions("WarmUpLR", "warmup_steps", "least 1", "not 0"));
}

TEST(Schedules, ListsGoByEpochs) {
  const auto near = [](std::vector<double> values) {
    return ::testing::Pointwise(::testing::DoubleNear(1e-12), values);
  };
  EXPECT_THAT(*exponential_decay_lr({0.1, 0.9, 6, 2, 1}), near({0.1, 0.1, 0.09, 0.09, 0.081, 0.081}));
  EXPECT_THAT(*natural_exp_decay_lr({0.1, 0.9, 6, 2, 2, true}),
              near({0.1, 0.1, 0.1, 0.1, 0.1 * std::exp(-1.8), 0.1 * std::exp(-1.8)}));
  EXPECT_THAT(*inverse_decay_lr({0.1, 0.5, 3, 1, 1, true}), near({0.1, 0.1 / 1.5, 0.05}));
  EXPECT_THAT(*cosine_decay_lr({0.01, 0.1, 6, 2, 2}), near({0.1, 0.1, 0.055, 0.055, 0.01, 0.01}));
  EXPECT_THAT(*polynomial_decay_lr({0.1, 0.01, 3, 1, 2, 0.5}),
              near({0.1, 0.09 * std::sqrt(0.5) + 0.01, 0.01}));
  EXPECT_THAT(*warmup_lr({0.1, 6, 2, 2}), near({0, 0, 0.05, 0.05, 0.1, 0.1}));
  const std::int64_t milestones[] = {2, 5};
  const double rates[] = {0.1, 0.05};
  EXPECT_THAT(*piecewise_constant_lr(milestones, rates), near({0.1, 0.1, 0.05, 0.05, 0.05}));
}

TEST(Schedules, ListsRefuseWhatTheyCannotDo) {
  EXPECT_THAT(warmup_lr({0.1, 0, 2, 2}).error().message,
              Mentions("warmup_lr", "total_step", "least 1", "not 0"));
  EXPECT_THAT(cosine_decay_lr({0.2, 0.1, 6, 2, 2}).error().message,
              Mentions("cosine_decay_lr", "max_lr", "above", "min_lr = 0.2", "0.1"));
  const std::int64_t falling[] = {5, 2};
  const double rates[] = {0.1, 0.05};
  EXPECT_THAT(piecewise_constant_lr(falling, rates).error().message,
              HasSubstr("milestone[1] must lie in [5,"));
}

}  // namespace optimizers_test
}  // namespace
}  // namespace muster::nn
