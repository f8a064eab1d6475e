// A training that is stopped and goes on is the unbroken one, bit by bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "muster/train/control_callbacks.h"
#include "muster/train/front_end.h"
#include "muster/train/job.h"
#include "muster/train/model.h"
#include "muster/train/model_checkpoint.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/train/bars.h"
#include "tests/unit/train/local_recovery.h"

namespace muster::train {
namespace {

using checkpoint::testing::MemoryStorage;
using testing::bars;
using testing::batches;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LocalRecovery;
using ::testing::SizeIs;

// Each step's loss, and an error at some of them: a kill, or a peer's death.
class Course final : public Callback {
 public:
  Result<> on_train_begin(CallbackContext&) override {
    ++begins;
    return {};
  }
  Result<> on_train_step_end(CallbackContext& context) override {
    losses[context.cur_step_num] = loss_of(context).value();
    steps.push_back(context.cur_step_num);
    if (context.cur_step_num != fails_at) return {};
    fails_at = -1;
    return fail(failure, "here it ends");
  }
  Result<> on_train_epoch_end(CallbackContext& context) override {
    epoch_ends.push_back(context.cur_epoch_num);
    return {};
  }

  std::int64_t fails_at = -1;
  Code failure = Code::internal;
  int begins = 0;
  std::map<std::int64_t, double> losses;
  std::vector<std::int64_t> steps, epoch_ends;
};

data::Dataset shuffled_bars() {
  return data::mnist({.folder = "/bars"}, bars(70))
      .map({data::rescale(1.0F / 255.0F, 0.0F)}, {"image"})
      .map({data::type_cast(DType::int32)}, {"label"})
      .shuffle(20)
      .batch(10);
}

// Points are written on another thread than files.
struct Disks {
  MemoryStorage points, files;
};

// Dense layers one after the other, of so many outputs each.
nn::CellPtr net(const std::vector<std::int64_t>& widths) {
  std::vector<nn::CellPtr> cells{std::make_shared<nn::Flatten>()};
  for (std::int64_t inputs = 784; const std::int64_t outputs : widths) {
    if (inputs != 784) {
      cells.push_back(std::make_shared<nn::ReLU>());
      cells.push_back(std::make_shared<nn::Dropout>(0.3));
    }
    cells.push_back(std::make_shared<nn::Dense>(inputs, outputs));
    inputs = outputs;
  }
  return std::make_shared<nn::SequentialCell>(std::move(cells));
}

// A process: it makes its net, and trains in a job whose points are in `storage`.
struct Process {
  explicit Process(Disks& disks, std::int64_t points_every = 3,
                   const std::vector<std::int64_t>& widths = {12, 10})
      : recovery(disks.points) {
    set_seed(3);
    network = net(widths);
    optimizer = std::make_shared<nn::Momentum>(network->trainable_params(),
                                               nn::MomentumOptions{.learning_rate = 0.05});
    model =
        Model::create(
            {.network = network, .loss_fn = std::make_shared<nn::CrossEntropyLoss>(), .optimizer = optimizer})
            .value();
    saving = std::make_shared<ModelCheckpoint>(
        ModelCheckpointOptions{
            .prefix = "bars", .directory = "/files", .config = {.save_checkpoint_steps = points_every}},
        disks.files);
    callbacks = {
        course, saving,
        std::make_shared<ReduceLROnPlateau>(ReduceLROnPlateauOptions{.monitor = "loss", .patience = 1}),
        std::make_shared<LearningRateScheduler>(
            [](double rate, std::int64_t step) { return step == 9 ? rate * 0.5 : rate; })};
  }

  Result<> train(std::int64_t epochs = 4, data::Dataset dataset = shuffled_bars()) {
    return model->train(
        {.epochs = epochs, .dataset = std::move(dataset), .callbacks = callbacks, .recovery = &recovery});
  }

  std::vector<std::byte> bits() const {
    std::vector<std::byte> all;
    for (const graph::ParameterPtr& parameter : model->train_network()->parameters()) {
      const Tensor& value = parameter->materialize(seed());
      all.insert(all.end(), value.bytes(), value.bytes() + value.size_bytes());
    }
    return all;
  }

  LocalRecovery recovery;
  std::shared_ptr<nn::Cell> network;
  std::shared_ptr<nn::Optimizer> optimizer;
  std::unique_ptr<Model> model;
  std::shared_ptr<Course> course = std::make_shared<Course>();
  std::shared_ptr<ModelCheckpoint> saving;
  std::vector<CallbackPtr> callbacks;
};

// The unbroken run.
struct Whole {
  explicit Whole(std::int64_t epochs = 4) {
    Disks storage;
    Process process(storage);
    MUSTER_CHECK(process.train(epochs).has_value(), "nothing happens to it");
    bits = process.bits();
    losses = process.course->losses;
  }
  std::vector<std::byte> bits;
  std::map<std::int64_t, double> losses;
};

TEST(ModelRecovery, AKilledProcessGoesOnBitByBit) {
  const Whole whole;
  for (const std::int64_t killed_at : {1, 3, 4, 7, 8, 14, 20, 22, 28}) {
    Disks storage;
    {
      Process first(storage);
      first.course->fails_at = killed_at;
      ASSERT_FALSE(first.train());
    }
    Process second(storage);
    const auto done = second.train();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(second.bits(), whole.bits) << "killed at " << killed_at;
    for (const auto& [step, loss] : second.course->losses) EXPECT_EQ(loss, whole.losses.at(step)) << step;
    EXPECT_EQ(second.course->steps.front(), (killed_at - 1) / 3 * 3 + 1);
    EXPECT_EQ(second.course->begins, 1);
  }
}

TEST(ModelRecovery, ASurvivorGoesBackBitByBit) {
  const Whole whole;
  for (const std::int64_t lost_at : {1, 3, 6, 7, 13, 14, 22, 28}) {
    Disks storage;
    Process process(storage);
    process.course->fails_at = lost_at;
    process.course->failure = Code::peer_lost;
    const auto done = process.train();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(process.recovery.epochs, 1);
    EXPECT_EQ(process.bits(), whole.bits) << "lost at " << lost_at;
    EXPECT_EQ(process.course->losses, whole.losses);
    EXPECT_EQ(process.course->begins, 1);
    EXPECT_THAT(process.course->epoch_ends, Contains(4));
  }
}

TEST(ModelRecovery, ADamagedPointIsSkippedForTheOneBefore) {
  const Whole whole;
  Disks storage;
  {
    Process first(storage);
    first.course->fails_at = 11;
    ASSERT_FALSE(first.train());
  }
  const std::string file = "/recovery/job-0123456789abcdef/worker_0/call_0.step_9/tensors.safetensors";
  storage.points.content(file).back() ^= std::byte{1};
  Process second(storage);
  ASSERT_TRUE(second.train());
  EXPECT_EQ(second.course->steps.front(), 7);
  EXPECT_EQ(second.bits(), whole.bits);
}

TEST(ModelRecovery, FinishedCallsAreSkippedAndTheirEndStateIsTaken) {
  Disks storage;
  Process first(storage);
  ASSERT_TRUE(first.train(2));
  const std::vector<std::byte> after_first = first.bits();
  first.course->fails_at = 10;
  ASSERT_FALSE(first.train(3));

  Process second(storage);
  second.recovery.finished = 1;
  ASSERT_TRUE(second.train(2));
  EXPECT_THAT(second.course->steps, SizeIs(0));
  EXPECT_EQ(second.bits(), after_first);
  EXPECT_EQ(second.saving->latest_ckpt_file_name(), "/files/bars-2_7.ckpt");
  ASSERT_TRUE(second.train(3));
  EXPECT_EQ(second.course->steps.front(), 10);

  Disks other;
  Process whole(other);
  ASSERT_TRUE(whole.train(2));
  ASSERT_TRUE(whole.train(3));
  EXPECT_EQ(second.bits(), whole.bits());
  EXPECT_EQ(second.saving->latest_ckpt_file_name(), whole.saving->latest_ckpt_file_name());
}

TEST(ModelRecovery, SaysOnceWhatItResumes) {
  std::vector<std::string> lines;
  front_end().print = [&](std::string_view line) { lines.emplace_back(line); };
  Disks storage;
  {
    Process first(storage);
    first.course->fails_at = 5;
    ASSERT_FALSE(first.train());
  }
  EXPECT_THAT(lines, SizeIs(0));
  Process second(storage);
  ASSERT_TRUE(second.train());
  front_end().print = nullptr;
  EXPECT_THAT(
      lines,
      ElementsAre(
          "resuming job 0123456789abcdef at step 3; delete /recovery of every process to start fresh"));
}

TEST(ModelRecovery, AScriptThatHasChangedIsToldWhatDoesNotFitAndWhatToDo) {
  Disks storage;
  {
    Process first(storage);
    first.course->fails_at = 5;
    ASSERT_FALSE(first.train());
  }
  const auto complaint = [&](const std::vector<std::int64_t>& widths) {
    Process changed(storage, 3, widths);
    const auto done = changed.train();
    return done ? "it trained" : done.error().message;
  };
  EXPECT_THAT(complaint({13, 10}), Mentions("'step 3 of call 0'", "'1.weight'", "float32 (13, 784)",
                                            "float32 (12, 784)", "delete", "/recovery"));
  EXPECT_THAT(complaint({12, 10, 10}), Mentions("script", "'7.weight'"));
  EXPECT_THAT(complaint({12}), Mentions("'4.weight'", "script"));
  const auto fewer = Process(storage).train(4, shuffled_bars().take(3));
  ASSERT_FALSE(fewer);
  EXPECT_THAT(fewer.error().message, Mentions("7 batches", "data", "has 3"));
}

TEST(ModelRecovery, GroupsOfStepsGoOnBitByBit) {
  const auto train = [](Process& process) {
    return process.model->train({.epochs = 6,
                                 .dataset = shuffled_bars(),
                                 .callbacks = process.callbacks,
                                 .dataset_sink_mode = true,
                                 .sink_size = 5,
                                 .recovery = &process.recovery});
  };
  Disks unbroken, storage;
  Process whole(unbroken, 5);
  ASSERT_TRUE(train(whole));
  {
    Process first(storage, 5);
    first.course->fails_at = 20;
    ASSERT_FALSE(train(first));
  }
  Process second(storage, 5);
  ASSERT_TRUE(train(second));
  EXPECT_EQ(second.bits(), whole.bits());
  EXPECT_EQ(second.course->steps.front(), 20);
}

TEST(ModelRecovery, AFullDiskCostsThePointsAndNotTheTraining) {
  const Whole whole;
  Disks storage;
  {
    Process first(storage);
    first.course->fails_at = 11;
    ASSERT_FALSE(first.train());
  }
  Process second(storage);
  storage.points.set_fault({.at = 1, .kind = checkpoint::testing::Fault::Kind::forever});
  second.course->fails_at = 20;
  second.course->failure = Code::peer_lost;
  const auto done = second.train();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(second.course->steps[11], 10) << "went back to what was there before";
  EXPECT_EQ(second.bits(), whole.bits);
}

TEST(ModelRecovery, AnEvaluationGivesItsResultOfBefore) {
  Disks storage;
  const auto evaluated = [&](Process& process, int& updates) {
    process.course->fails_at = -1;
    auto model = Model::create({.network = process.network,
                                .loss_fn = std::make_shared<nn::CrossEntropyLoss>(),
                                .metrics = {{"accuracy", metric_named("accuracy").value()},
                                            {"recall", metric_named("recall").value()}}})
                     .value();
    const auto count = std::make_shared<LambdaCallback>(
        LambdaCallback::Functions{.on_eval_step_end = [&](CallbackContext&) -> Result<> {
          ++updates;
          return {};
        }});
    return to_string(
        model->eval({.dataset = batches(40, 10), .callbacks = {count}, .recovery = &process.recovery})
            .value());
  };
  Process first(storage);
  int updates = 0;
  const std::string before = evaluated(first, updates);
  ASSERT_TRUE(first.train(1));
  const std::string after = evaluated(first, updates);
  EXPECT_EQ(updates, 8);
  EXPECT_NE(before, after);
  Process second(storage);
  second.recovery.finished = 1;
  EXPECT_EQ(evaluated(second, updates), before);
  ASSERT_TRUE(second.train(1));
  EXPECT_EQ(evaluated(second, updates), after);
  EXPECT_EQ(updates, 8) << "a finished evaluation was made again";
}

TEST(ModelCheckpoint, AFullDiskCostsTheFileAndNotTheTraining) {
  Disks storage;
  Process process(storage);
  storage.files.set_fault({.at = 8, .kind = checkpoint::testing::Fault::Kind::forever});
  const auto done = process.train();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(process.course->steps.back(), 28);
}

}  // namespace
}  // namespace muster::train
