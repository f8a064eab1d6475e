#include "muster/train/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/train/context.h"
#include "muster/train/job.h"
#include "muster/train/model.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/train/bars.h"

namespace muster::train {
namespace {

using testing::batches;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_net;

struct Made {
  std::shared_ptr<nn::Cell> network = small_net();
  std::shared_ptr<nn::Momentum> optimizer = std::make_shared<nn::Momentum>(network->trainable_params());
  std::unique_ptr<Model> model =
      Model::create(
          {.network = network, .loss_fn = std::make_shared<nn::CrossEntropyLoss>(), .optimizer = optimizer})
          .value();
};

auto has_op(std::string_view name) { return Contains(Field(&graph::PlanStep::op, name)); }

TEST(ModelExplain, ShowsTheStepOfATrainingWithoutTakingIt) {
  const Made made;
  const auto explanation = made.model->explain({.dataset = batches(40, 20)});
  ASSERT_TRUE(explanation) << explanation.error().message;
  EXPECT_EQ(explanation->inputs, "float32 (20, 28, 28, 1), int32 (20,)");
  EXPECT_THAT(explanation->steps, has_op("momentum"));
  EXPECT_THAT(explanation->steps, has_op("softmax_cross_entropy_grad"));
  // (784 16 + 16 10) of each of 20 samples, forward and for the weights; the second also for its input.
  EXPECT_EQ(explanation->flops(), 2.0 * 20 * (2 * (784 * 16 + 16 * 10) + 16 * 10));
  std::vector<std::string> names;
  for (const auto& [name, type] : explanation->parameters) names.push_back(name);
  EXPECT_THAT(names, Contains("1.weight"));
  EXPECT_THAT(names, Contains("moments.1.weight"));
  EXPECT_FALSE(made.network->parameters().front()->materialized()) << "nothing ran";
}

TEST(ModelExplain, LeavesTheTrainingAsItWouldBe) {
  const auto trained = [](const Made& made) {
    MUSTER_CHECK(made.model->train({.epochs = 1, .dataset = batches(40, 20)}).has_value(), "it trains");
    const Tensor& weight = made.network->parameters().front()->storage();
    return std::vector<float>(weight.span<float>().begin(), weight.span<float>().end());
  };
  set_seed(1);
  const std::vector<float> plain = trained(Made());
  set_seed(1);
  const Made explained;
  ASSERT_TRUE(explained.model->explain({.dataset = batches(40, 20)}));
  EXPECT_EQ(trained(explained), plain);
}

TEST(ModelExplain, ShowsTheStepOfAnEvaluation) {
  const Made made;
  const auto explanation = made.model->explain({.dataset = batches(40, 20), .train = false});
  ASSERT_TRUE(explanation) << explanation.error().message;
  EXPECT_THAT(explanation->steps, has_op("softmax_cross_entropy"));
  EXPECT_THAT(explanation->steps, Not(has_op("momentum")));
}

TEST(ModelExplain, SaysWhatThereIsNothingToExplainFor) {
  const Made made;
  set_mode(Mode::eager);
  const auto eager = made.model->explain({.dataset = batches(40, 20)});
  set_mode(Mode::graph);
  ASSERT_FALSE(eager);
  EXPECT_THAT(eager.error().message, Mentions("explain", "eager"));

  const auto without_loss = Model::create({.network = small_net()}).value();
  const auto evaluation = without_loss->explain({.dataset = batches(40, 20), .train = false});
  ASSERT_FALSE(evaluation);
  EXPECT_THAT(evaluation.error().message, Mentions("needs", "loss_fn", "eval_network"));
  const auto empty = made.model->explain({.dataset = batches(5, 10, true)});
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, HasSubstr("no items"));
}

TEST(Explain, IsOffUnlessTheVariableSaysOtherwise) { EXPECT_EQ(explain_mode(), ExplainMode::off); }

}  // namespace
}  // namespace muster::train
