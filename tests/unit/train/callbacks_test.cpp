#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "muster/train/control_callbacks.h"
#include "muster/train/front_end.h"
#include "muster/train/model_checkpoint.h"
#include "muster/train/monitors.h"
#include "muster/train/parameters.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/train/bars.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// What is printed while it lives.
class Printed {
 public:
  Printed() {
    front_end().print = [this](std::string_view line) { lines.emplace_back(line); };
  }
  ~Printed() { front_end().print = nullptr; }
  std::vector<std::string> lines;
};

CallbackContext at_step(std::int64_t epoch, std::int64_t step, std::int64_t batch_num, float loss) {
  CallbackContext context;
  context.cur_epoch_num = epoch;
  context.cur_step_num = step;
  context.batch_num = batch_num;
  context.epoch_num = 10;
  context.net_outputs = {Tensor::scalar(loss)};
  return context;
}

TEST(LossMonitor, PrintsEachStepOfTheEpoch) {
  Printed printed;
  LossMonitor monitor;
  auto first = at_step(1, 1, 3, 1.4686084F), last = at_step(2, 6, 3, 2.0F);
  ASSERT_TRUE(monitor.on_train_step_end(first));
  ASSERT_TRUE(monitor.on_train_step_end(last));
  EXPECT_THAT(printed.lines,
              ElementsAre("epoch: 1 step: 1, loss is 1.4686084", "epoch: 2 step: 3, loss is 2.0"));
}

TEST(LossMonitor, PrintsEveryFewSteps) {
  Printed printed;
  LossMonitor monitor(2);
  for (std::int64_t step = 1; step <= 4; ++step) {
    auto context = at_step(1, step, 4, 1.5F);
    ASSERT_TRUE(monitor.on_train_step_end(context));
  }
  EXPECT_THAT(printed.lines, ElementsAre("epoch: 1 step: 2, loss is 1.5", "epoch: 1 step: 4, loss is 1.5"));
}

TEST(LossMonitor, EndsTheTrainingAtALossThatIsNoNumber) {
  Printed printed;
  LossMonitor monitor(100);
  for (const float loss : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto context = at_step(2, 5, 4, loss);
    const auto done = monitor.on_train_step_end(context);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("In epoch: 2 step: 1, loss is "));
  }
}

TEST(LossMonitor, PrintsWhatAnEvaluationFound) {
  Printed printed;
  LossMonitor monitor;
  auto context = at_step(3, 9, 3, 1.0F);
  context.eval_results = {{"accuracy", 0.5}, {"eval_loss", 1.25}};
  ASSERT_TRUE(monitor.on_train_epoch_end(context));
  EXPECT_THAT(printed.lines, ElementsAre("Eval result: epoch 3, metrics: {'accuracy': 0.5}"));
}

TEST(TimeMonitor, PrintsTheTimeOfEpochAndStep) {
  Printed printed;
  ManualClock clock;
  TimeMonitor monitor({}, clock);
  auto context = at_step(1, 250, 250, 1.0F);
  ASSERT_TRUE(monitor.on_train_epoch_begin(context));
  clock.advance(std::chrono::microseconds(20896986));
  ASSERT_TRUE(monitor.on_train_epoch_end(context));
  EXPECT_THAT(printed.lines, ElementsAre("Train epoch time: 20896.986 ms, per step time: 83.588 ms"));
}

TEST(TimeMonitor, SaysWhatASlowSourceCosts) {
  Printed printed;
  ManualClock clock;
  TimeMonitor monitor({}, clock);
  for (const int waited : {60, 2}) {
    auto context = at_step(1, 2, 2, 1.0F);
    ASSERT_TRUE(monitor.on_train_epoch_begin(context));
    for (int step = 0; step < 2; ++step) {
      clock.advance(std::chrono::milliseconds(waited));
      ASSERT_TRUE(monitor.on_train_step_begin(context));
      clock.advance(std::chrono::milliseconds(40));
      ASSERT_TRUE(monitor.on_train_step_end(context));
    }
    ASSERT_TRUE(monitor.on_train_epoch_end(context));
  }
  EXPECT_THAT(
      printed.lines,
      ElementsAre("Train epoch time: 200.000 ms, per step time: 100.000 ms, of which 60.000 ms between steps",
                  "Train epoch time: 84.000 ms, per step time: 42.000 ms"));
}

TEST(TimeMonitor, SaysTheTimeOfDataWhateverItIsWhereAsked) {
  Printed printed;
  ManualClock clock;
  TimeMonitor monitor({.data_time = true}, clock);
  auto context = at_step(1, 1, 1, 1.0F);
  ASSERT_TRUE(monitor.on_train_epoch_begin(context));
  clock.advance(std::chrono::milliseconds(2));
  ASSERT_TRUE(monitor.on_train_step_begin(context));
  clock.advance(std::chrono::milliseconds(40));
  ASSERT_TRUE(monitor.on_train_step_end(context));
  ASSERT_TRUE(monitor.on_train_epoch_end(context));
  EXPECT_THAT(printed.lines,
              ElementsAre("Train epoch time: 42.000 ms, per step time: 42.000 ms (data time: 2.000 ms)"));
}

TEST(ProgressBar, ShowsEpochStepAndLoss) {
  ManualClock clock;
  ProgressBar bar({.width = 10, .live = false}, clock);
  auto context = at_step(2, 15, 10, 1.5F);
  ASSERT_TRUE(bar.on_train_epoch_begin(context));
  clock.advance(std::chrono::milliseconds(100));
  EXPECT_EQ(bar.line(context), "epoch 2/10 [=====>    ] 5/10, 50 steps/s, ETA 0:02, loss 1.5000");
  context.eval_results = {{"accuracy", 0.5}};
  EXPECT_THAT(bar.line(context), HasSubstr("loss 1.5000, accuracy 0.5"));
}

TEST(ProgressBar, KeepsTheValuesOfTheLastEvaluation) {
  ProgressBar bar({.live = false});
  auto context = at_step(1, 10, 10, 1.5F);
  ASSERT_TRUE(bar.on_train_epoch_begin(context));
  context.eval_results = {{"accuracy", 0.98765},
                          {"recall", Tensor::from<double>(std::vector<double>{1.0 / 3, 1}, {2})}};
  ASSERT_TRUE(bar.on_train_epoch_end(context));
  context.eval_results.clear();
  EXPECT_THAT(bar.line(context), HasSubstr(", accuracy 0.9877, recall [0.3333, 1]"));
  ASSERT_TRUE(bar.on_train_begin(context));
  EXPECT_THAT(bar.line(context), Not(HasSubstr("accuracy")));
}

// ---- Control callbacks
// ---------------------------------------------------------------------------------------------

CallbackContext after_epoch(std::int64_t epoch, double eval_loss) {
  CallbackContext context = at_step(epoch, epoch, 1, 1.0F);
  context.evaluates = true;
  context.eval_results = {{"eval_loss", eval_loss}};
  return context;
}

TEST(EarlyStopping, StopsWhenPatienceIsOver) {
  EarlyStopping stopping({.patience = 2});
  CallbackContext begin;
  ASSERT_TRUE(stopping.on_train_begin(begin));
  std::vector<bool> stopped;
  std::int64_t epoch = 0;
  for (const double loss : {3.0, 2.0, 2.5, 2.0}) {
    auto context = after_epoch(++epoch, loss);
    ASSERT_TRUE(stopping.on_train_epoch_end(context));
    stopped.push_back(context.stop_requested());
  }
  EXPECT_THAT(stopped, ElementsAre(false, false, false, true));
}

TEST(EarlyStopping, KnowsThatAccuraciesGetBetterUpwards) {
  EarlyStopping stopping({.monitor = "acc", .patience = 1});
  auto context = after_epoch(1, 0);
  context.eval_results = {{"acc", 0.5}};
  ASSERT_TRUE(stopping.on_train_epoch_end(context));
  context.eval_results = {{"acc", 0.6}};
  ASSERT_TRUE(stopping.on_train_epoch_end(context));
  EXPECT_FALSE(context.stop_requested());
  context.eval_results = {{"acc", 0.55}};
  ASSERT_TRUE(stopping.on_train_epoch_end(context));
  EXPECT_TRUE(context.stop_requested());
}

TEST(EarlyStopping, GoesBackToTheWeightsOfTheBestEpochIfAsked) {
  for (const bool restore : {true, false}) {
    EarlyStopping stopping({.patience = 2, .restore_best_weights = restore});
    const auto weight = std::make_shared<graph::Parameter>("weight", Tensor::scalar(0.0F));
    const auto network = testing::small_net();
    network->insert_param("weight", weight);
    CallbackContext begin;
    begin.train_network = network;
    ASSERT_TRUE(stopping.on_train_begin(begin));
    std::int64_t epoch = 0;
    for (const double loss : {3.0, 2.0, 2.5, 2.25}) {
      auto context = after_epoch(++epoch, loss);
      context.train_network = network;
      ASSERT_TRUE(weight->set(Tensor::scalar(static_cast<float>(epoch))));
      ASSERT_TRUE(stopping.on_train_epoch_end(context));
      EXPECT_EQ(context.stop_requested(), epoch == 4);
    }
    EXPECT_EQ(*weight->storage().data<float>(), restore ? 2.0F : 4.0F);
  }
}

TEST(EarlyStopping, ListsWhatThereIsToMonitor) {
  EarlyStopping stopping({.monitor = "auc"});
  auto context = after_epoch(1, 1.0);
  const auto done = stopping.on_train_epoch_end(context);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, Mentions("'auc'", "monitor", "eval_loss"));
}

std::shared_ptr<nn::Optimizer> optimizer_with(double learning_rate, const nn::Cell& network) {
  return std::make_shared<nn::SGD>(network.trainable_params(),
                                   nn::SGDOptions{.learning_rate = learning_rate});
}

float rate_of(const nn::Optimizer& optimizer) { return *optimizer.learning_rate()->storage().data<float>(); }

TEST(ReduceLROnPlateau, ReducesTheLearningRateDownToItsMinimum) {
  const auto network = testing::small_net();
  const auto optimizer = optimizer_with(1.0, *network);
  ReduceLROnPlateau reduce({.factor = 0.5, .patience = 1, .min_lr = 0.3});
  CallbackContext begin;
  ASSERT_TRUE(reduce.on_train_begin(begin));
  std::vector<float> rates;
  for (std::int64_t epoch = 1; epoch <= 4; ++epoch) {
    auto context = after_epoch(epoch, 1.0);
    context.optimizer = optimizer;
    ASSERT_TRUE(reduce.on_train_epoch_end(context));
    rates.push_back(*optimizer->learning_rate()->materialize(1).data<float>());
  }
  EXPECT_THAT(rates, ElementsAre(1.0F, 0.5F, 0.3F, 0.3F));
}

TEST(LearningRateScheduler, SetsTheRateOfTheNextStep) {
  const auto network = testing::small_net();
  LearningRateScheduler scheduler(
      [](double rate, std::int64_t step) -> Result<double> { return step % 2 == 0 ? rate * 0.5 : rate; });
  auto context = at_step(1, 1, 10, 1.0F);
  context.optimizer = optimizer_with(1.0, *network);
  for (std::int64_t step = 1; step <= 4; ++step) {
    context.cur_step_num = step;
    ASSERT_TRUE(scheduler.on_train_step_end(context));
  }
  EXPECT_EQ(rate_of(*context.optimizer), 0.25F);
}

// ---- ModelCheckpoint --------------------------------------------------------------------------------------

struct Saving {
  checkpoint::testing::MemoryStorage files;
  ManualClock clock;
  CallbackContext context = at_step(1, 0, 4, 1.0F);
  Saving() { context.train_network = testing::small_net(); }

  // Steps first..last of epochs of four steps.
  void steps(ModelCheckpoint& saver, std::int64_t first, std::int64_t last) {
    for (context.cur_step_num = first; context.cur_step_num <= last; ++context.cur_step_num) {
      context.cur_epoch_num = (context.cur_step_num - 1) / 4 + 1;
      clock.advance(std::chrono::seconds(10));
      ASSERT_TRUE(saver.on_train_step_end(context));
    }
    --context.cur_step_num;
  }
  std::vector<std::string> names() { return files.list("/ckpt").value(); }
};

TEST(ModelCheckpoint, SavesEveryFewStepsAndAtTheEndAndKeepsTheNewest) {
  Saving saving;
  ModelCheckpoint saver({.prefix = "net",
                         .directory = "/ckpt",
                         .config = {.save_checkpoint_steps = 3, .keep_checkpoint_max = 2}},
                        saving.files, saving.clock);
  ASSERT_TRUE(saver.on_train_begin(saving.context));
  saving.steps(saver, 1, 8);
  EXPECT_THAT(saving.names(), ElementsAre("net-1_3.ckpt", "net-2_2.ckpt"));
  ASSERT_TRUE(saver.on_train_end(saving.context));
  EXPECT_THAT(saving.names(), ElementsAre("net-2_2.ckpt", "net-2_4.ckpt"));
  EXPECT_EQ(saver.latest_ckpt_file_name(), "/ckpt/net-2_4.ckpt");
  const auto entries = checkpoint::load("/ckpt/net-2_4.ckpt", saving.files).value();
  EXPECT_EQ(entries.front().name, "1.weight");
}

TEST(ModelCheckpoint, SavesBySecondsWhenThereAreNoSteps) {
  Saving saving;
  ModelCheckpoint saver(
      {.directory = "/ckpt", .config = {.save_checkpoint_steps = 0, .save_checkpoint_seconds = 25}},
      saving.files, saving.clock);
  ASSERT_TRUE(saver.on_train_begin(saving.context));
  saving.steps(saver, 1, 7);
  EXPECT_THAT(saving.names(), ElementsAre("CKP-1_3.ckpt", "CKP-2_2.ckpt"));
}

TEST(ModelCheckpoint, LeavesFilesOfAnEarlierTrainingAlone) {
  Saving saving;
  ASSERT_TRUE(checkpoint::save("/ckpt/CKP-3_1.ckpt", {}, saving.files));
  ModelCheckpoint saver({.directory = "/ckpt"}, saving.files, saving.clock);
  ASSERT_TRUE(saver.on_train_begin(saving.context));
  saving.steps(saver, 1, 1);
  EXPECT_THAT(saving.names(), ElementsAre("CKP-3_1.ckpt", "CKP_1-1_1.ckpt"));
}

TEST(ModelCheckpoint, KeepsTwoFilesAtLeastOfAJobThatRecovers) {
  Saving saving;
  saving.context.recovers = true;
  ModelCheckpoint saver(
      {.directory = "/ckpt", .config = {.save_checkpoint_steps = 1, .keep_checkpoint_max = 1}}, saving.files,
      saving.clock);
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(saver.on_train_begin(saving.context));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              Mentions("keep_checkpoint_max", "is 1", "becomes 2", "fails"));
  for (std::int64_t step = 1; step <= 3; ++step) {
    saving.steps(saver, step, step);
    for (const auto& use : saving.context.take_uses()) use({}, {});
  }
  EXPECT_THAT(saving.names(), ElementsAre("CKP-1_2.ckpt", "CKP-1_2.state", "CKP-1_3.ckpt", "CKP-1_3.state"));
}

TEST(ModelCheckpoint, LoadsWhatItSaved) {
  Saving saving;
  const auto network = saving.context.train_network;
  ModelCheckpoint saver({.directory = "/ckpt"}, saving.files, saving.clock);
  ASSERT_TRUE(saver.on_train_begin(saving.context));
  saving.steps(saver, 1, 1);
  const auto parameter = network->parameters().front();
  const Tensor before = parameter->storage().clone();
  ASSERT_TRUE(parameter->set(Tensor::zeros(DType::float32, parameter->shape())));
  const auto entries = checkpoint::load(saver.latest_ckpt_file_name(), saving.files).value();
  const auto unmatched = load_parameters(network->parameters(), entries);
  ASSERT_TRUE(unmatched) << unmatched.error().message;
  EXPECT_TRUE(unmatched->parameters.empty() && unmatched->entries.empty());
  EXPECT_EQ(
      std::vector(before.span<float>().begin(), before.span<float>().end()),
      std::vector(parameter->storage().span<float>().begin(), parameter->storage().span<float>().end()));
}

// Entries for all parameters of the network, with other values.
std::vector<checkpoint::Entry> entries_for(const nn::Cell& network) {
  std::vector<checkpoint::Entry> entries;
  for (const auto& parameter : network.parameters())
    entries.push_back({parameter->name(), Tensor::zeros(DType::float32, parameter->shape())});
  return entries;
}

TEST(Parameters, OfAnotherNetworkAreAnErrorThatNamesAllAndSetsNothing) {
  const auto network = testing::small_net();
  auto entries = entries_for(*network);
  const std::string other_shape = entries.front().name, missing = entries.back().name;
  entries.front().value = Tensor::zeros(DType::float32, {2});
  entries.back().name = "head.weight";
  const auto fits = network->parameters()[1];
  Tensor before = Tensor::zeros(DType::float32, fits->shape());
  before.span<float>()[0] = 3.0F;
  ASSERT_TRUE(fits->set(before));
  const auto loaded = load_parameters(network->parameters(), entries);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(fits->storage().span<float>()[0], 3.0F);
  for (const std::string& name : {other_shape, missing, std::string("head.weight"), std::string("(2,)")})
    EXPECT_THAT(loaded.error().message, HasSubstr(name));
}

TEST(Parameters, ThatFitAreLoadedWhereThatIsAskedFor) {
  const auto network = testing::small_net();
  auto entries = entries_for(*network);
  const std::string other_shape = entries.front().name;
  entries.front().value = Tensor::zeros(DType::float32, {2});
  entries.push_back({"head.weight", Tensor::zeros(DType::float32, {2})});
  const auto loaded = load_parameters(network->parameters(), entries, {.strict = false});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_THAT(loaded->parameters, ElementsAre(other_shape));
  EXPECT_THAT(loaded->entries, ElementsAre(other_shape, "head.weight"));
  EXPECT_EQ(network->parameters()[1]->storage().span<float>()[0], 0.0F);
}

TEST(Parameters, AreLoadedFromTheFileOfATrainingThatHasTheOptimizersStateToo) {
  const auto network = testing::small_net();
  auto entries = entries_for(*network);
  entries.push_back({"moments." + entries.front().name, entries.front().value});
  entries.push_back({"global_step", Tensor::scalar(3.0)});
  EXPECT_TRUE(load_parameters(network->parameters(), entries));
  entries.push_back({"moments.of.another", entries.front().value});
  EXPECT_FALSE(load_parameters(network->parameters(), entries));
}

}  // namespace
}  // namespace muster::train
