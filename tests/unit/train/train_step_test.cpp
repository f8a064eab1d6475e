#include "muster/train/train_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "muster/train/job.h"
#include "muster/train/parameters.h"
#include "tests/unit/base/error_of.h"
#include "tests/unit/base/mentions.h"

namespace muster::train {
namespace {

using nn::Value;
using ::testing::HasSubstr;

struct Line : nn::Module<Line> {
  graph::ParameterPtr slope = add_parameter("slope", Tensor::scalar(1.0F));
  Value forward(const Value& x) { return x * Value(slope); }
};

Tensor numbers(std::vector<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return Tensor::from<float>(values, {count});
}

// loss = mean((slope x - y)^2), d loss / d slope = mean(2 x (slope x - y)).
TEST(TrainStep, GivesTheLossBeforeTheUpdateAndUpdates) {
  Line line;
  nn::MSELoss loss_fn;
  nn::SGD optimizer(line, {.learning_rate = 0.5});
  TrainStep step(line, loss_fn, optimizer);
  const std::vector<Tensor> batch{numbers({1, 2}), numbers({3, 6})};
  EXPECT_EQ(step(batch).item<float>(), 10);
  EXPECT_EQ(line.slope->storage().item<float>(), 6);  // 1 - 0.5 * -10
  EXPECT_EQ(step(batch).item<float>(), 22.5);
}

TEST(TrainStep, TakesALossWrittenAsAFunction) {
  Line line;
  nn::SGD optimizer(line, {.learning_rate = 1.0});
  TrainStep step([&](std::span<const Value> batch) { return nn::ops::reduce_sum(line(batch[0])); },
                 optimizer);
  EXPECT_EQ(step(std::vector{numbers({1, 2})}).item<float>(), 3);
  EXPECT_EQ(line.slope->storage().item<float>(), -2);
}

// The gradient, -10, is made 4 long.
TEST(TrainStep, ClipsTheGradientsToANormThatIsGiven) {
  Line line;
  nn::MSELoss loss_fn;
  nn::SGD optimizer(line, {.learning_rate = 0.5});
  TrainStep step(line, loss_fn, optimizer, {.clip_norm = 4});
  step(std::vector{numbers({1, 2}), numbers({3, 6})});
  EXPECT_EQ(read_parameter(line.slope).value().item<float>(), 3);  // 1 - 0.5 * -4
  EXPECT_THAT(ERROR_OF(TrainStep(line, loss_fn, optimizer, {.clip_norm = 0})),
              Mentions("clip_norm", "above 0"));
}

TEST(Parameters, AreCopiedWherePairsFit) {
  Line line, target;
  EXPECT_TRUE(target.slope->set(Tensor::scalar(7.0F)));
  copy_parameters(target.parameters(), line.parameters()).value();
  EXPECT_EQ(read_parameter(line.slope).value().item<float>(), 7);
  nn::Dense other(2, 2);
  EXPECT_THAT(ERROR_OF(copy_parameters(other.parameters(), line.parameters()).value()),
              Mentions("1 parameters", "2"));
  const std::vector weight{other.parameters()[0]};
  EXPECT_THAT(ERROR_OF(copy_parameters(weight, line.parameters()).value()), Mentions("weight", "slope"));
  EXPECT_EQ(read_parameter(line.slope).value().item<float>(), 7);
}

// A network that looks at its elements is refused by an error, which a program can catch.
struct Branching : nn::Module<Branching> {
  Value forward(const Value& x) { return x.tensor().item<float>() > 0 ? x : nn::ops::neg(x); }
};

TEST(Module, CannotLookAtElementsWhileItsGraphIsMade) {
  Branching branching;
  EXPECT_THAT(ERROR_OF(branching(Value(numbers({1})))), Mentions("no value while its graph is made"));
}

TEST(TrainStep, NeedsDataAndALabel) {
  Line line;
  nn::MSELoss loss_fn;
  nn::SGD optimizer(line, {});
  TrainStep step(line, loss_fn, optimizer);
  EXPECT_THAT(ERROR_OF(step(std::vector{numbers({1})})), Mentions("takes", "1 tensors"));
}

// Where a process has joined its job it stays: each of these runs in one of its own.
void run_and_exit(const std::function<void()>& body) { std::_Exit(run(body)); }

TEST(RunDeathTest, TrainsAloneWithoutARole) {
  const auto body = [] { std::fprintf(stderr, "rank %u of %u", rank(), world_size()); };
  EXPECT_EXIT(run_and_exit(body), ::testing::ExitedWithCode(0), HasSubstr("rank 0 of 1"));
}

TEST(RunDeathTest, PrintsAnErrorAndGivesAStatusOtherThan0) {
  const auto body = [] { throw Exception(Code::invalid_argument, "no such digit"); };
  EXPECT_EXIT(run_and_exit(body), ::testing::ExitedWithCode(1), HasSubstr("no such digit"));
}

TEST(RunDeathTest, NamesTheProfileThatACallOfExitLoses) {
  const auto run_profiled = [] {
    ::setenv("MUSTER_PROFILE", "unused", 1);
    return run([] { std::exit(0); });
  };
  EXPECT_EXIT(run_profiled(), ::testing::ExitedWithCode(0), HasSubstr("the profile is lost"));
}

}  // namespace
}  // namespace muster::train
