// A loop written by hand that is stopped, or loses a peer, ends with the bits of the unbroken one.
#include "muster/train/recoverable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "muster/train/aborted_step.h"
#include "muster/train/job.h"
#include "muster/train/model.h"
#include "muster/train/run_context.h"
#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/train/bars.h"
#include "tests/unit/train/local_recovery.h"

namespace muster::train {
namespace {

using checkpoint::testing::MemoryStorage;
using testing::bars;
using ::testing::ElementsAre;
using testing::LocalRecovery;
using ::testing::SizeIs;

// A process with its script: net, optimizer, loop.
class Script {
 public:
  explicit Script(MemoryStorage* storage) {
    if (storage != nullptr) recovery.emplace(*storage);
    set_seed(5);
    net = std::make_shared<nn::SequentialCell>(std::initializer_list<nn::CellPtr>{
        std::make_shared<nn::Flatten>(), std::make_shared<nn::Dropout>(0.2),
        std::make_shared<nn::Dense>(784, 10)});
    net->set_train();
    optimizer =
        std::make_shared<nn::Momentum>(net->trainable_params(), nn::MomentumOptions{.learning_rate = 0.05});
    gradients = graph::value_and_grad(
        "by hand",
        [this](std::span<const nn::Value> inputs) { return loss_fn((*net)(inputs[0]), inputs[1]); },
        {.parameters = net->trainable_params()});
  }

  // Runs the loop; `at` is called within each body, and ends the process by giving false.
  Result<bool> run(const std::function<bool(std::size_t)>& at = {}) {
    Recoverable loop({.network = net,
                      .optimizer = optimizer,
                      .dataset = data::mnist({.folder = "/bars"}, bars(50))
                                     .map({data::rescale(1.0F / 255.0F, 0.0F)}, {"image"})
                                     .map({data::type_cast(DType::int32)}, {"label"})
                                     .batch(10),
                      .epochs = 4,
                      .save_steps = 3,
                      .recovery = recovery ? &*recovery : nullptr});
    while (true) {
      MUSTER_TRY(const std::optional<LoopStep> step, loop.next());
      if (!step) return true;
      steps.push_back(step->epoch * 5 + step->step);
      const auto outputs = gradients->call(step->item, "", run_context().value()).value();
      if (at && !at(steps.size())) return false;
      optimizer->call(nn::Values(outputs.begin() + 1, outputs.end()), run_context().value());
      if (step_is_aborted()) behind_aborted_step = bits();
    }
  }

  std::vector<std::byte> bits() const {
    std::vector<std::byte> all;
    for (const auto& cell : {nn::CellPtr(net), nn::CellPtr(optimizer)})
      for (const graph::ParameterPtr& parameter : cell->parameters()) {
        const Tensor& value = parameter->materialize(seed());
        all.insert(all.end(), value.bytes(), value.bytes() + value.size_bytes());
      }
    return all;
  }

  std::optional<LocalRecovery> recovery;
  std::shared_ptr<nn::Cell> net;
  std::shared_ptr<nn::Optimizer> optimizer;
  std::vector<std::int64_t> steps;
  std::vector<std::byte> behind_aborted_step;

 private:
  nn::CrossEntropyLoss loss_fn;
  std::shared_ptr<graph::Function> gradients;
};

std::vector<std::byte> unbroken() {
  Script script(nullptr);
  MUSTER_CHECK(script.run().value(), "nothing happens to it");
  return script.bits();
}

TEST(Recoverable, WithoutRecoveryIsJustTheLoops) {
  Script script(nullptr);
  ASSERT_TRUE(script.run().value());
  ASSERT_THAT(script.steps, SizeIs(20));
  for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(script.steps[static_cast<std::size_t>(i)], i);
}

TEST(Recoverable, AKilledProcessGoesOnBitByBit) {
  const auto whole = unbroken();
  for (const std::size_t killed_at : {1, 3, 4, 5, 6, 12, 20}) {
    MemoryStorage storage;
    {
      Script first(&storage);
      ASSERT_FALSE(first.run([&](std::size_t step) { return step != killed_at; }).value());
    }
    Script second(&storage);
    ASSERT_TRUE(second.run().value());
    EXPECT_EQ(second.bits(), whole) << "killed at " << killed_at;
    EXPECT_EQ(second.steps.front(), static_cast<std::int64_t>((killed_at - 1) / 3 * 3));
  }
}

TEST(Recoverable, AVoidStepUpdatesNothingAndIsMadeAgain) {
  const auto whole = unbroken();
  for (const std::size_t lost_at : {1, 4, 5, 20}) {
    MemoryStorage storage;
    Script script(&storage);
    std::vector<std::byte> before;
    const auto lose = [&](std::size_t step) {
      if (step != lost_at) return true;
      before = script.bits();
      EXPECT_TRUE(or_abort(fail(Code::peer_lost, "somebody died")));
      EXPECT_TRUE(step_is_aborted());
      return true;
    };
    ASSERT_TRUE(script.run(lose).value());
    EXPECT_EQ(script.behind_aborted_step, before) << "an optimizer has worked in a void step";
    EXPECT_FALSE(step_is_aborted());
    EXPECT_EQ(script.recovery->epochs, 1);
    EXPECT_EQ(script.bits(), whole) << "lost at " << lost_at;
    EXPECT_EQ(script.steps[lost_at], static_cast<std::int64_t>((lost_at - 1) / 3 * 3));
  }
}

// Counts what it is shown.
class Seen final : public Metric {
 public:
  Result<> clear() override { return {}; }
  Result<> update(std::span<const Tensor>) override {
    ++updates;
    return {};
  }
  Result<MetricValue> eval() override { return 1.0; }
  int updates = 0;
};

class Ends final : public Callback {
 public:
  Result<> on_train_step_end(CallbackContext&) override { return note(); }
  Result<> on_train_end(CallbackContext&) override { return note(); }
  Result<> on_eval_step_end(CallbackContext&) override { return note(); }
  Result<> on_eval_end(CallbackContext&) override { return note(); }
  int calls = 0;

 private:
  Result<> note() {
    ++calls;
    return {};
  }
};

// What others would have given to it was never there.
TEST(Recoverable, MetricsAndCallbacksSeeNothingOfAnAbortedStep) {
  MemoryStorage storage;
  Script script(&storage);
  const auto seen = std::make_shared<Seen>();
  const auto ends = std::make_shared<Ends>();
  const auto network = testing::small_net();
  const auto model =
      Model::create({.network = network,
                     .loss_fn = std::make_shared<nn::CrossEntropyLoss>(),
                     .optimizer = std::make_shared<nn::Momentum>(network->trainable_params(),
                                                                 nn::MomentumOptions{.learning_rate = 0.1}),
                     .metrics = {{"seen", seen}}})
          .value();
  const auto evaluated = [&] {
    const MetricValues values =
        model->eval({.dataset = testing::batches(20, 10), .callbacks = {ends}, .recovery = &*script.recovery})
            .value();
    return std::get<double>(values.at(0).second);
  };
  const auto lose = [&](std::size_t step) {
    if (step == 1) {
      EXPECT_EQ(evaluated(), 1.0) << "nothing has happened yet";
    }
    if (step != 2) return true;
    EXPECT_EQ(std::exchange(seen->updates, 0), 2);
    EXPECT_EQ(std::exchange(ends->calls, 0), 3);
    EXPECT_TRUE(or_abort(fail(Code::peer_lost, "somebody died")));
    EXPECT_TRUE(std::isnan(evaluated()));
    EXPECT_TRUE(model->train(
        {.dataset = testing::batches(20, 10), .callbacks = {ends}, .recovery = &*script.recovery}));
    EXPECT_EQ(seen->updates, 0);
    EXPECT_EQ(ends->calls, 0);
    return true;
  };
  ASSERT_TRUE(script.run(lose).value());
}

TEST(Recoverable, OtherErrorsInABodyAreErrors) {
  MemoryStorage storage;
  Script script(&storage);
  EXPECT_TRUE(script
                  .run([](std::size_t) {
                    EXPECT_FALSE(or_abort(fail(Code::invalid_argument, "a mistake")));
                    return true;
                  })
                  .value());
  EXPECT_FALSE(or_abort(fail(Code::peer_lost, "outside of a body")));
}

TEST(Recoverable, AFinishedLoopIsPassedOver) {
  MemoryStorage storage;
  Script first(&storage);
  ASSERT_TRUE(first.run().value());
  Script second(&storage);
  second.recovery->finished = 1;
  ASSERT_TRUE(second.run().value());
  EXPECT_THAT(second.steps, SizeIs(0));
  EXPECT_EQ(second.bits(), first.bits());
}

}  // namespace
}  // namespace muster::train
