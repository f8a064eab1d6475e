#include "muster/train/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>

#include "muster/train/control_callbacks.h"
#include "muster/train/metrics.h"
#include "muster/train/model_checkpoint.h"
#include "muster/train/monitors.h"
#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/train/bars.h"

namespace muster::train {
namespace {
namespace state_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
Tensor tensor(const std::vector<T>& values, const Shape& shape) {
  return Tensor::from<T>(values, shape);
}

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(StateValues, ComeBackFromJsonAsTheyWere) {
  const std::string text = StateValues()
                               .set("flag", true)
                               .set("integer", std::int64_t{-7})
                               .set("number", 0.1 + 0.2)
                               .set("whole", 3.0)
                               .set("text", std::string("a \"quoted\" line\n"))
                               .set("numbers", std::vector<double>{1.0, -infinity, std::numbers::pi})
                               .set("texts", std::vector<std::string>{"a", "b"})
                               .set("no_texts", std::vector<std::string>{})
                               .set_number_or_none("none", std::nullopt)
                               .to_json();
  const StateValues values = StateValues::from_json(text).value();
  EXPECT_EQ(values.flag("flag").value(), true);
  EXPECT_EQ(values.integer("integer").value(), -7);
  EXPECT_EQ(values.number("number").value(), 0.1 + 0.2);
  EXPECT_EQ(values.number("whole").value(), 3.0);
  EXPECT_EQ(values.text("text").value(), "a \"quoted\" line\n");
  EXPECT_THAT(values.numbers("numbers").value(), ElementsAre(1.0, -infinity, std::numbers::pi));
  EXPECT_THAT(values.texts("texts").value(), ElementsAre("a", "b"));
  EXPECT_TRUE(values.texts("no_texts").value().empty());
  EXPECT_EQ(values.number_or_none("none").value(), std::nullopt);
}

TEST(StateValues, KeepNumbersThatJsonHasNoWordFor) {
  const std::string text =
      StateValues().set("a", infinity).set("b", -infinity).set("c", std::nan("")).to_json();
  const StateValues values = StateValues::from_json(text).value();
  EXPECT_EQ(values.number("a").value(), infinity);
  EXPECT_EQ(values.number("b").value(), -infinity);
  EXPECT_TRUE(std::isnan(values.number("c").value()));
}

TEST(StateValues, SayWhatIsMissingOrNoState) {
  const StateValues values = StateValues::from_json(R"({"a": "x"})").value();
  EXPECT_THAT(values.integer("b").error().message, HasSubstr("'b'"));
  EXPECT_THAT(values.integer("a").error().message, HasSubstr("whole number named 'a'"));
  EXPECT_FALSE(StateValues::from_json("[1]"));
  EXPECT_FALSE(StateValues::from_json("{"));
  EXPECT_FALSE(StateValues::from_json(R"({"a": {"b": 1}})"));
}

// ---- Callbacks --------------------------------------------------------------------------------------------

CallbackContext after_epoch(std::int64_t epoch, double score) {
  CallbackContext context;
  context.cur_epoch_num = epoch;
  context.evaluates = true;
  context.eval_results = {{"score", score}};
  return context;
}

TEST(EarlyStopping, CountsOnFromItsState) {
  const EarlyStoppingOptions options{.monitor = "score", .patience = 3, .mode = MonitorMode::max};
  EarlyStopping before(options), after(options);
  auto context = after_epoch(1, 5.0);
  ASSERT_TRUE(before.on_train_begin(context));
  ASSERT_TRUE(before.on_train_epoch_end(context));
  for (const std::int64_t epoch : {2, 3}) {
    context = after_epoch(epoch, 4.0);
    ASSERT_TRUE(before.on_train_epoch_end(context));
  }
  EXPECT_FALSE(context.stop_requested());
  ASSERT_TRUE(after.on_train_begin(context));
  ASSERT_TRUE(after.load_state(before.state().value()));
  context = after_epoch(4, 4.5);
  ASSERT_TRUE(after.on_train_epoch_end(context));
  EXPECT_TRUE(context.stop_requested());
}

TEST(EarlyStopping, HasTheBestWeightsInItsState) {
  const auto net = std::make_shared<nn::Dense>(2, 1);
  const graph::ParameterPtr weight = net->parameters().front();
  const auto with_net = [&](std::int64_t epoch, double score) {
    CallbackContext context = after_epoch(epoch, score);
    context.train_network = net;
    return context;
  };
  const EarlyStoppingOptions options{
      .monitor = "score", .patience = 1, .mode = MonitorMode::max, .restore_best_weights = true};
  EarlyStopping before(options), after(options);
  auto context = with_net(1, 5.0);
  ASSERT_TRUE(before.on_train_begin(context));
  const Tensor best = weight->materialize(1).clone();
  ASSERT_TRUE(before.on_train_epoch_end(context));
  ASSERT_TRUE(weight->set(tensor<float>({8, 9}, weight->shape())));
  ASSERT_TRUE(after.load_state(before.state().value()));
  context = with_net(2, 1.0);
  ASSERT_TRUE(after.on_train_epoch_end(context));
  EXPECT_TRUE(context.stop_requested());
  EXPECT_EQ(weight->storage().span<float>()[0], best.span<float>()[0]);
}

TEST(ModelCheckpoint, GoesOnWithItsPrefixAndItsFiles) {
  checkpoint::testing::MemoryStorage storage;
  const ModelCheckpointOptions options{.prefix = "run",
                                       .directory = "/saved",
                                       .config = {.save_checkpoint_steps = 1, .keep_checkpoint_max = 2}};
  const auto net = std::make_shared<nn::Dense>(2, 1);
  CallbackContext context;
  context.train_network = net;
  context.cur_epoch_num = 1;
  context.batch_num = 10;
  ModelCheckpoint before(options, storage), after(options, storage);
  ASSERT_TRUE(before.on_train_begin(context));
  for (context.cur_step_num = 1; context.cur_step_num <= 2; ++context.cur_step_num)
    ASSERT_TRUE(before.on_train_step_end(context));
  const State state = before.state().value();
  ASSERT_TRUE(storage.write("/saved/run-1_3.ckpt.a1B2c3", std::vector<std::byte>(8)));
  ASSERT_TRUE(after.on_train_begin(context));  // would take run_1
  ASSERT_TRUE(after.load_state(state));
  EXPECT_EQ(after.latest_ckpt_file_name(), "/saved/run-1_2.ckpt");
  EXPECT_FALSE(storage.read("/saved/run-1_3.ckpt.a1B2c3")) << "half a file of the process before";
  ASSERT_TRUE(after.on_train_step_end(context));
  EXPECT_EQ(after.latest_ckpt_file_name(), "/saved/run-1_3.ckpt");
  EXPECT_FALSE(storage.read("/saved/run-1_1.ckpt"));
  EXPECT_TRUE(storage.read("/saved/run-1_2.ckpt"));
}

TEST(TimeMonitor, CountsTheTimeOfTheProcessBefore) {
  ManualClock first, second;
  first.advance(std::chrono::hours(5));
  TimeMonitor before({.data_size = 1}, first), after({.data_size = 1}, second);
  CallbackContext context;
  ASSERT_TRUE(before.on_train_epoch_begin(context));
  first.advance(std::chrono::milliseconds(250));
  const State state = before.state().value();
  ASSERT_TRUE(after.on_train_epoch_begin(context));
  ASSERT_TRUE(after.load_state(state));
  second.advance(std::chrono::milliseconds(50));
  EXPECT_THAT(after.state().value().text, HasSubstr("300000000"));
}

// ---- Metrics ----------------------------------------------------------------------------------------------

// Updates with `first`, hands the state over, and counts on with `second`.
std::string counted_in_two(const std::function<MetricPtr()>& make, const std::vector<Tensor>& first,
                           const std::vector<Tensor>& second, bool in_two) {
  MetricPtr metric = make();
  EXPECT_TRUE(metric->update(first));
  if (in_two) {
    const State state = metric->state().value();
    metric = make();
    EXPECT_TRUE(metric->load_state(state));
  }
  EXPECT_TRUE(metric->update(second));
  return to_string(metric->eval().value());
}

TEST(Metric, BuiltInOnesCountOnFromTheirState) {
  const Tensor scores = tensor<float>({0.1F, 0.9F, 0.6F, 0.4F, 0.2F, 0.8F}, {3, 2});
  const Tensor labels = tensor<std::int32_t>({1, 1, 1}, {3}), others = tensor<std::int32_t>({0, 1, 0}, {3});
  const Tensor numbers = tensor<float>({1, 2, 4}, {3});
  std::map<std::string, std::function<MetricPtr()>> makers;
  for (const std::string& name : metric_names()) makers[name] = [name] { return metric_named(name).value(); };
  makers["confusion"] = [] {
    return std::make_shared<ConfusionMatrix>(ConfusionMatrixOptions{.num_classes = 2});
  };
  for (const auto& [name, make] : makers) {
    std::vector<Tensor> first{scores, labels}, second{scores, others};
    if (name == "mae" || name == "mse") first = {numbers, labels}, second = {numbers, others};
    if (name == "loss") first = {Tensor::scalar(0.7F)}, second = {Tensor::scalar(0.1F)};
    EXPECT_EQ(counted_in_two(make, first, second, true), counted_in_two(make, first, second, false)) << name;
  }
}

}  // namespace state_test
}  // namespace
}  // namespace muster::train
