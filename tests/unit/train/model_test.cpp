#include "muster/train/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "muster/train/activity_scope.h"
#include "muster/train/job.h"
#include "muster/train/metrics.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/train/bars.h"

namespace muster::train {
namespace {
namespace model_test {

using testing::batches;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::small_net;

struct Made {
  std::shared_ptr<nn::Cell> network;
  std::unique_ptr<Model> model;
};

Made made_model(NamedMetrics metrics = {}, std::string amp_level = "O0") {
  set_seed(1);
  const auto network = small_net();
  const auto optimizer =
      std::make_shared<nn::Momentum>(network->trainable_params(), nn::MomentumOptions{.learning_rate = 0.1});
  auto model = Model::create({.network = network,
                              .loss_fn = std::make_shared<nn::CrossEntropyLoss>(),
                              .optimizer = optimizer,
                              .metrics = std::move(metrics),
                              .amp_level = std::move(amp_level)});
  MUSTER_CHECK(model.has_value(), "the model is good");
  return {network, *std::move(model)};
}

// Notes the calls and the losses.
class Recorder : public Callback {
 public:
  Result<> on_train_begin(CallbackContext&) override { return note("begin"); }
  Result<> on_train_epoch_begin(CallbackContext&) override { return note("epoch_begin"); }
  Result<> on_train_step_begin(CallbackContext&) override { return note("step_begin"); }
  Result<> on_train_step_end(CallbackContext& context) override {
    losses.push_back(loss_of(context).value());
    steps.push_back(context.cur_step_num);
    epochs.push_back(context.cur_epoch_num);
    if (stop_at == context.cur_step_num) context.request_stop();
    return note("step_end");
  }
  Result<> on_train_epoch_end(CallbackContext& context) override {
    for (const auto& [name, value] : context.eval_results) results.push_back(name);
    return note("epoch_end");
  }
  Result<> on_train_end(CallbackContext&) override { return note("end"); }
  Result<> on_eval_step_end(CallbackContext& context) override {
    eval_outputs = context.net_outputs.size();
    return note("eval_step_end");
  }

  std::vector<std::string> calls, results;
  std::vector<double> losses;
  std::vector<std::int64_t> steps, epochs;
  std::size_t eval_outputs = 0;
  std::int64_t stop_at = -1;

 private:
  Result<> note(std::string call) {
    calls.push_back(std::move(call));
    return {};
  }
};

TEST(Model, LearnsAndCallsBackAtEveryStep) {
  auto [network, model] = made_model();
  const auto recorder = std::make_shared<Recorder>();
  const auto done = model->train({.epochs = 8, .dataset = batches(80, 20), .callbacks = {recorder}});
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_THAT(recorder->losses, SizeIs(32));
  EXPECT_LT(recorder->losses.back(), 0.5 * recorder->losses.front());
  EXPECT_EQ(recorder->steps.back(), 32);
  EXPECT_EQ(recorder->epochs.back(), 8);
  EXPECT_THAT(std::vector(recorder->calls.begin(), recorder->calls.begin() + 5),
              ElementsAre("begin", "epoch_begin", "step_begin", "step_end", "step_begin"));
  EXPECT_EQ(recorder->calls.back(), "end");
}

TEST(Model, LearnsInMixedPrecisionOverFloat32) {
  auto [network, model] = made_model({}, "O2");
  const auto recorder = std::make_shared<Recorder>();
  const auto done = model->train({.epochs = 8, .dataset = batches(80, 20), .callbacks = {recorder}});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_LT(recorder->losses.back(), 0.5 * recorder->losses.front());
  for (const graph::ParameterPtr& parameter : network->parameters())
    EXPECT_EQ(parameter->dtype(), DType::float32) << parameter->name();
}

TEST(Model, TakesTheSameStepsAsALoopWrittenByHand) {
  auto [network, model] = made_model();
  const auto recorder = std::make_shared<Recorder>();
  const auto dataset = batches(64, 16);
  ASSERT_TRUE(model->train({.epochs = 2, .dataset = dataset, .callbacks = {recorder}}));

  const auto other = small_net();
  nn::CrossEntropyLoss loss_fn;
  nn::Momentum optimizer(other->trainable_params(), {.learning_rate = 0.1});
  const auto step = graph::value_and_grad(
      "by hand", [&](std::span<const nn::Value> inputs) { return loss_fn((*other)(inputs[0]), inputs[1]); },
      {.parameters = other->trainable_params()});
  std::vector<double> losses;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    auto pass = dataset.iterate({.seed = seed(), .epoch = epoch}).value();
    while (const auto batch = pass.next().value()) {
      const auto outputs = step->call(*batch, "", {.seed = seed()}).value();
      losses.push_back(*outputs[0].data<float>());
      (void)optimizer.call(nn::Values(outputs.begin() + 1, outputs.end()), {.seed = seed()});
    }
  }
  EXPECT_EQ(recorder->losses, losses);
}

TEST(Model, GivesTheSameBitsForTheSameSeed) {
  std::vector<std::vector<float>> weights;
  for (int run = 0; run < 2; ++run) {
    auto [network, model] = made_model();
    ASSERT_TRUE(model->train({.epochs = 2, .dataset = batches(50, 16)}));
    const Tensor& weight = network->parameters().front()->storage();
    weights.emplace_back(weight.span<float>().begin(), weight.span<float>().end());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(Model, MakesASecondPlanForASmallerLastBatch) {
  auto [network, model] = made_model();
  const auto recorder = std::make_shared<Recorder>();
  ASSERT_TRUE(model->train({.epochs = 2, .dataset = batches(50, 16), .callbacks = {recorder}}));
  EXPECT_THAT(recorder->losses, SizeIs(8));
}

TEST(Model, GroupsStepsOnlyWhenASinkSizeIsGiven) {
  for (const std::int64_t sink_size : {-1, 3}) {
    auto [network, model] = made_model();
    const auto recorder = std::make_shared<Recorder>();
    ASSERT_TRUE(model->train({.epochs = 4,
                              .dataset = batches(40, 10),
                              .callbacks = {recorder},
                              .dataset_sink_mode = true,
                              .sink_size = sink_size}));
    if (sink_size < 0)
      EXPECT_THAT(recorder->steps, SizeIs(16));
    else
      EXPECT_THAT(recorder->steps, ElementsAre(3, 6, 9, 12));
  }
}

TEST(Model, StopsWhenACallbackAsksForIt) {
  auto [network, model] = made_model();
  const auto recorder = std::make_shared<Recorder>();
  recorder->stop_at = 6;
  ASSERT_TRUE(model->train({.epochs = 4, .dataset = batches(40, 10), .callbacks = {recorder}}));
  EXPECT_EQ(recorder->steps.back(), 6);
  EXPECT_EQ(recorder->epochs.back(), 2);
  EXPECT_EQ(recorder->calls.back(), "end");
}

TEST(Model, ShufflesAResumedTrainingAsAnUnbrokenOne) {
  const auto whole = std::make_shared<Recorder>();
  ASSERT_TRUE(made_model().model->train({.epochs = 3, .dataset = batches(40, 10), .callbacks = {whole}}));
  auto [network, model] = made_model();
  const auto first = std::make_shared<Recorder>(), second = std::make_shared<Recorder>();
  ASSERT_TRUE(model->train({.epochs = 1, .dataset = batches(40, 10), .callbacks = {first}}));
  ASSERT_TRUE(
      model->train({.epochs = 3, .dataset = batches(40, 10), .callbacks = {second}, .initial_epoch = 1}));
  std::vector<double> both = first->losses;
  both.insert(both.end(), second->losses.begin(), second->losses.end());
  EXPECT_EQ(both, whole->losses);
  EXPECT_EQ(second->steps.front(), 5);
  EXPECT_EQ(second->epochs.front(), 2);
}

// A second process, made anew, goes on where the first one ended: dropout draws what it would have drawn.
TEST(Model, ResumesDropoutAtTheStepOfTheUnbrokenTraining) {
  const auto made = [] {
    set_seed(1);
    const auto network = std::make_shared<nn::SequentialCell>(
        std::initializer_list<nn::CellPtr>{small_net(), std::make_shared<nn::Dropout>(0.5)});
    const auto optimizer =
        std::make_shared<nn::SGD>(network->trainable_params(), nn::SGDOptions{.learning_rate = 0.1});
    auto model = Model::create(
        {.network = network, .loss_fn = std::make_shared<nn::CrossEntropyLoss>(), .optimizer = optimizer});
    MUSTER_CHECK(model.has_value(), "the model is good");
    return Made{network, *std::move(model)};
  };
  const auto whole = std::make_shared<Recorder>(), second = std::make_shared<Recorder>();
  ASSERT_TRUE(made().model->train({.epochs = 2, .dataset = batches(40, 10), .callbacks = {whole}}));
  const Made first = made();
  ASSERT_TRUE(first.model->train({.epochs = 1, .dataset = batches(40, 10)}));
  const Made resumed = made();
  const auto to = resumed.network->parameters(), from = first.network->parameters();
  for (std::size_t i = 0; i < to.size(); ++i) ASSERT_TRUE(to[i]->set(from[i]->storage()));
  ASSERT_TRUE(resumed.model->train(
      {.epochs = 2, .dataset = batches(40, 10), .callbacks = {second}, .initial_epoch = 1}));
  EXPECT_EQ(second->losses, std::vector<double>(whole->losses.begin() + 4, whole->losses.end()));
}

// Half of each row of zeros and ones is dropped, twice: in small multiples of 1/8 no sum rounds.
class DroppedSums : public nn::Cell {
 public:
  DroppedSums() : Cell("DroppedSums") {
    insert_child("first", first_);
    insert_child("second", second_);
    insert_param("weight", weight_);
  }
  nn::Values construct(std::span<const nn::Value> inputs) override {
    const nn::Value x = nn::ops::reshape(inputs[0], {inputs[0].shape()[0], 784});
    const nn::Value bright = nn::ops::cast(nn::ops::cast(x, DType::float32) > 100, DType::float32);
    const nn::Value some = first_->call({{bright}}).front();
    const nn::Value fewer = second_->call({{nn::ops::mul(some, weight_)}}).front();
    return nn::ops::reduce_mean(nn::ops::reduce_sum(fewer, {1}));
  }

 private:
  std::shared_ptr<nn::Dropout> first_ = std::make_shared<nn::Dropout>(0.5);
  std::shared_ptr<nn::Dropout> second_ = std::make_shared<nn::Dropout>(0.5);
  graph::ParameterPtr weight_ =
      std::make_shared<graph::Parameter>("weight", graph::TensorType{DType::float32, {784}}, nn::ones());
};

TEST(Model, DropsInMicroBatchesWhatItDropsInWholeOnes) {
  const auto trained = [](std::int64_t micro_batches) {
    set_seed(1);
    const auto network = std::make_shared<DroppedSums>();
    const auto optimizer =
        std::make_shared<nn::SGD>(network->trainable_params(), nn::SGDOptions{.learning_rate = 0.25});
    const auto model = Model::create({.network = network, .optimizer = optimizer}).value();
    const auto recorder = std::make_shared<Recorder>();
    const auto done = model->train(
        {.epochs = 1,
         .dataset = data::mnist({.folder = "/bars"}, testing::bars(32)).project({"image"}).batch(8),
         .callbacks = {recorder},
         .micro_batches = micro_batches});
    EXPECT_TRUE(done) << done.error().message;
    const Tensor weight = network->parameters().front()->storage();
    return std::pair(recorder->losses,
                     std::vector<float>(weight.data<float>(), weight.data<float>() + weight.elements()));
  };
  const auto whole = trained(1);
  EXPECT_THAT(whole.first, SizeIs(4));
  EXPECT_NE(whole.first[0], whole.first[1]);
  for (const std::int64_t parts : {2, 4, 8}) {
    const auto split = trained(parts);
    EXPECT_EQ(split.first, whole.first) << parts << " parts";
    EXPECT_EQ(split.second, whole.second) << parts << " parts";
  }
}

TEST(Model, GivesAMetricTheOutputsThatItsIndexesName) {
  const auto accuracy = std::make_shared<Accuracy>();
  const auto mae = std::make_shared<MAE>();
  mae->set_indexes({2, 2});
  auto [network, model] = made_model({{"accuracy", accuracy}, {"mae", mae}});
  const auto values = model->eval({.dataset = batches(40, 10)});
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ(*number_of((*values)[1].second), 0) << "the labels beside themselves";
  accuracy->set_indexes({1, 7});
  EXPECT_THAT(model->eval({.dataset = batches(40, 10)}).error().message,
              Mentions("'accuracy'", "output 7", "evaluation", "gives 3"));
}

// Waits at its first image until the main thread reads: it may be made ahead on another thread.
class WaitsForAReader : public data::Operation {
 public:
  std::string name() const override { return "WaitsForAReader"; }
  Result<std::vector<Tensor>> apply(std::span<const Tensor> values, data::Draw) const override {
    const TimePoint deadline = real_clock().now() + std::chrono::seconds(10);
    while (!is_read && real_clock().now() < deadline)
      is_read = activity_of_main_thread().phase == cluster::WorkPhase::reading_data;
    return std::vector(values.begin(), values.end());
  }
  mutable bool is_read = false;
};

TEST(Model, ReadsTheDataOfAnEvaluationInThePhaseOfReading) {
  lead_activity();
  const auto waits = std::make_shared<WaitsForAReader>();
  auto [network, model] = made_model({{"loss", std::make_shared<Loss>()}});
  ASSERT_TRUE(model->eval({.dataset = batches(40, 10).map({waits})}));
  EXPECT_TRUE(waits->is_read);
}

TEST(Model, EvaluatesMetricsByName) {
  auto [network, model] =
      made_model({{"accuracy", std::make_shared<Accuracy>()}, {"loss", std::make_shared<Loss>()}});
  const auto before = model->eval({.dataset = batches(40, 10)}).value();
  ASSERT_TRUE(model->train({.epochs = 10, .dataset = batches(40, 10)}));
  const auto after = model->eval({.dataset = batches(40, 10)}).value();
  ASSERT_THAT(after, SizeIs(2));
  EXPECT_EQ(after[0].first, "accuracy");
  EXPECT_GT(*number_of(after[0].second), *number_of(before[0].second));
  EXPECT_GT(*number_of(after[0].second), 0.9);
  EXPECT_LT(*number_of(after[1].second), *number_of(before[1].second));
}

TEST(Model, FitEvaluatesAfterEveryFewEpochs) {
  auto [network, model] = made_model({{"accuracy", std::make_shared<Accuracy>()}});
  const auto recorder = std::make_shared<Recorder>();
  ASSERT_TRUE(model->train({.epochs = 5,
                            .dataset = batches(40, 10),
                            .callbacks = {recorder},
                            .valid_dataset = batches(20, 10),
                            .valid_frequency = 2}));
  EXPECT_THAT(recorder->results, ElementsAre("accuracy", "eval_loss", "accuracy", "eval_loss"));
  EXPECT_EQ(recorder->eval_outputs, 3U);
  EXPECT_EQ(recorder->steps.back(), 20);
}

TEST(Model, FitEvaluatesAfterTheEpochsThatAreListed) {
  auto [network, model] = made_model({{"accuracy", std::make_shared<Accuracy>()}});
  const auto recorder = std::make_shared<Recorder>();
  TrainOptions options{.epochs = 5,
                       .dataset = batches(40, 10),
                       .callbacks = {recorder},
                       .valid_dataset = batches(20, 10),
                       .valid_epochs = std::set<std::int64_t>{1, 4, 5}};
  ASSERT_TRUE(model->train(options));
  EXPECT_THAT(recorder->results,
              ElementsAre("accuracy", "eval_loss", "accuracy", "eval_loss", "accuracy", "eval_loss"));
  options.valid_epochs = std::set<std::int64_t>{0, 4};
  EXPECT_THAT(model->train(options).error().message, HasSubstr("valid_frequency"));
}

TEST(Model, TakesANetworkThatGivesItsLossItself) {
  set_seed(1);
  const auto network =
      std::make_shared<nn::WithLossCell>(small_net(), std::make_shared<nn::CrossEntropyLoss>());
  auto model =
      Model::create({.network = network, .optimizer = std::make_shared<nn::SGD>(network->trainable_params())})
          .value();
  const auto recorder = std::make_shared<Recorder>();
  ASSERT_TRUE(model->train({.epochs = 4, .dataset = batches(40, 10), .callbacks = {recorder}}));
  EXPECT_LT(recorder->losses.back(), recorder->losses.front());
}

TEST(Model, LeavesTheNamesOfTheParametersAsTheyAre) {
  auto [network, model] = made_model();
  std::vector<std::string> names;
  for (const auto& parameter : model->train_network()->parameters()) names.push_back(parameter->name());
  EXPECT_THAT(names, ::testing::Contains("1.weight"));
  EXPECT_THAT(names, ::testing::Contains("moments.1.weight"));
}

TEST(Model, SaysWhatDoesNotFitBeforeTheFirstStep) {
  auto [network, model] = made_model();
  const auto empty = model->train({.epochs = 1, .dataset = batches(5, 10, true)});
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, Mentions("training", "dataset"));
  const auto endless = model->train({.epochs = 1, .dataset = batches(20, 10).repeat()});
  ASSERT_FALSE(endless);
  EXPECT_THAT(endless.error().message, HasSubstr("repeats without end"));
  EXPECT_THAT(model->eval({.dataset = batches(20, 10)}).error().message, HasSubstr("without metrics"));
  EXPECT_THAT(Model::create({}).error().message, HasSubstr("a network is needed"));
}

// An op that cannot be: it throws.
Result<> add_what_does_not_fit() {
  (void)nn::ops::add(Tensor::zeros(DType::float32, {2}), Tensor::zeros(DType::float32, {3}));
  return {};
}

class Throwing : public Callback {
 public:
  explicit Throwing(std::string at) : at_(std::move(at)) {}
  Result<> begin(CallbackContext&) override { return at("begin"); }
  Result<> epoch_begin(CallbackContext&) override { return at("epoch_begin"); }
  Result<> step_begin(CallbackContext&) override { return at("step_begin"); }
  Result<> step_end(CallbackContext&) override { return at("step_end"); }
  Result<> epoch_end(CallbackContext&) override { return at("epoch_end"); }
  Result<> end(CallbackContext&) override { return at("end"); }

 private:
  Result<> at(std::string_view place) { return place == at_ ? add_what_does_not_fit() : Result<>{}; }
  std::string at_;
};

class ThrowingMetric : public Metric {
 public:
  explicit ThrowingMetric(std::string at) : at_(std::move(at)) {}
  Result<> clear() override { return at("clear"); }
  Result<> update(std::span<const Tensor>) override { return at("update"); }
  Result<MetricValue> eval() override {
    MUSTER_TRY_VOID(at("eval"));
    return MetricValue{1.0};
  }

 private:
  Result<> at(std::string_view place) { return place == at_ ? add_what_does_not_fit() : Result<>{}; }
  std::string at_;
};

TEST(Model, GivesTheErrorOfAnOpInACallbackOrAMetric) {
  const auto is_told = [](const auto& done) { return !done && done.error().code == Code::invalid_argument; };
  for (const char* place : {"begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end"}) {
    const Made made = made_model({{"accuracy", std::make_shared<Accuracy>()}});
    const CallbackPtr callback = std::make_shared<Throwing>(place);
    EXPECT_TRUE(is_told(made.model->train({.dataset = batches(20, 10), .callbacks = {callback}}))) << place;
    EXPECT_TRUE(is_told(made.model->eval({.dataset = batches(20, 10), .callbacks = {callback}}))) << place;
  }
  for (const char* place : {"clear", "update", "eval"}) {
    const Made made = made_model({{"own", std::make_shared<ThrowingMetric>(place)}});
    EXPECT_TRUE(is_told(made.model->eval({.dataset = batches(20, 10)}))) << place;
    EXPECT_TRUE(is_told(made.model->train({.dataset = batches(20, 10), .valid_dataset = batches(20, 10)})))
        << place;
  }
}

// Counts how often it is traced.
class Counting : public nn::SequentialCell {
 public:
  Counting() : SequentialCell({testing::small_net()}) {}
  nn::Values construct(std::span<const nn::Value> inputs) override {
    ++traces;
    return SequentialCell::construct(inputs);
  }
  int traces = 0;
};

TEST(Model, TracesOnceForTrainingAndOnceForEvaluation) {
  const auto network = std::make_shared<Counting>();
  auto model = Model::create({.network = network,
                              .loss_fn = std::make_shared<nn::CrossEntropyLoss>(),
                              .optimizer = std::make_shared<nn::SGD>(network->trainable_params())})
                   .value();
  ASSERT_TRUE(model->train({.epochs = 5, .dataset = batches(40, 10), .valid_dataset = batches(20, 10)}));
  EXPECT_EQ(network->traces, 2);
}

}  // namespace model_test
}  // namespace
}  // namespace muster::train
