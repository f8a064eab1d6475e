// The loop behind Model::train and muster.recoverable: what comes when, and where it goes on.
#include "muster/train/training_loop.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "muster/train/run_context.h"
#include "tests/unit/checkpoint/memory_storage.h"
#include "tests/unit/train/bars.h"
#include "tests/unit/train/local_recovery.h"

namespace muster::train {
namespace {

using checkpoint::testing::MemoryStorage;
using testing::batches;
using ::testing::ElementsAre;
using testing::LocalRecovery;

// Passes of two batches; it writes down what the loop gives.
class Course final : public LoopHooks {
 public:
  explicit Course(TrainingLoop::Options options) : loop_(*this, with_passes(options)) {}

  // `at` is called at each event, as written down, and may fail; a step that has not failed is complete.
  using At = std::function<Result<>(const std::string& event, TrainingLoop& loop)>;
  Result<> run(const At& at = {}) {
    while (true) {
      MUSTER_TRY(const TrainingLoop::Event event, loop_.next());
      events.push_back(written(event));
      if (event == TrainingLoop::Event::done) return {};
      if (const Result<> made = make(event, at); !made) MUSTER_TRY_VOID(loop_.recover(made.error()));
    }
  }

  TrainingParts parts() const override { return {.metrics = no_metrics_, .batches = 2}; }
  bool stop_requested() const override { return stop; }
  void set_stop(bool requested) override { stop = requested; }
  Result<> open(TrainingLoop& loop) override {
    loop.read(Batches(dataset_, passes));
    loop.start_at(0, 0);
    return {};
  }
  Result<> begin(bool) override {
    ++begins;
    return {};
  }

  std::vector<std::string> events;
  std::uint64_t passes = 0;
  int begins = 0;
  bool stop = false;

 private:
  TrainingLoop::Options with_passes(TrainingLoop::Options options) {
    options.passes = &passes;
    return options;
  }

  std::string written(TrainingLoop::Event event) const {
    switch (event) {
      case TrainingLoop::Event::epoch_begin:
        return fmt::format("epoch {}{}", loop_.epoch(), loop_.is_resumed() ? " again" : "");
      case TrainingLoop::Event::step:
        return fmt::format("step {}.{}", loop_.epoch(), loop_.step_in_epoch());
      case TrainingLoop::Event::epoch_end:
        return "epoch_end";
      case TrainingLoop::Event::end:
        return "end";
      case TrainingLoop::Event::done:
        break;
    }
    return "done";
  }

  Result<> make(TrainingLoop::Event event, const At& at) {
    const bool is_step = event == TrainingLoop::Event::step;
    if (is_step && loop_.recovers()) MUSTER_TRY_VOID(loop_.offer_memory());
    if (at) MUSTER_TRY_VOID(at(events.back(), loop_));
    if (!is_step) return {};
    loop_.complete_step();
    if (!loop_.recovers() || !loop_.is_save_due()) return {};
    MUSTER_TRY(checkpoint::Point point, loop_.point_of_step());
    loop_.save(std::move(point));
    return {};
  }

  data::Dataset dataset_ = batches(20, 10);
  NamedMetrics no_metrics_;
  TrainingLoop loop_;
};

// Fails once, at `event`, as if a worker were lost.
Course::At lose_at(std::string event) {
  return [event = std::move(event), lost = false](const std::string& now,
                                                  TrainingLoop& loop) mutable -> Result<> {
    if (now != event || std::exchange(lost, true)) return {};
    loop.call()->set_memory({});  // has changed
    return fail(Code::peer_lost, "a worker was lost");
  };
}

TEST(TrainingLoop, GivesEpochsAndTheirSteps) {
  Course course({.epochs = 2});
  ASSERT_TRUE(course.run());
  EXPECT_THAT(course.events, ElementsAre("epoch 0", "step 0.0", "step 0.1", "epoch_end", "epoch 1",
                                         "step 1.0", "step 1.1", "epoch_end", "end", "done"));
  EXPECT_EQ(course.begins, 1);
  EXPECT_EQ(course.passes, 2u);
}

TEST(TrainingLoop, StopsBehindTheEpochOfTheStepThatAsksForIt) {
  Course course({.epochs = 3});
  ASSERT_TRUE(course.run([&](const std::string& event, TrainingLoop&) -> Result<> {
    course.stop = course.stop || event == "step 0.0";
    return {};
  }));
  EXPECT_THAT(course.events, ElementsAre("epoch 0", "step 0.0", "epoch_end", "end", "done"));
}

TEST(TrainingLoop, AGroupOfStepsGoesOverTheEndsOfPassesAndDoesNotStop) {
  Course course({.epochs = 2, .group_steps = 3});
  ASSERT_TRUE(course.run([&](const std::string& event, TrainingLoop&) -> Result<> {
    course.stop = course.stop || event == "step 0.1";
    return {};
  }));
  EXPECT_THAT(course.events,
              ElementsAre("epoch 0", "step 0.0", "step 0.1", "step 0.2", "epoch_end", "end", "done"));
  EXPECT_EQ(course.passes, 2u);
}

TEST(TrainingLoop, GoesOnInTheMiddleOfAnEpoch) {
  MemoryStorage storage;
  LocalRecovery recovery(storage);
  Course course({.epochs = 2, .save_steps = 1, .recovery = &recovery});
  const auto done = course.run(lose_at("step 1.1"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_THAT(course.events,
              ElementsAre("epoch 0", "step 0.0", "step 0.1", "epoch_end", "epoch 1", "step 1.0", "step 1.1",
                          "epoch 1 again", "step 1.1", "epoch_end", "end", "done"));
  EXPECT_EQ(course.begins, 1);
  EXPECT_EQ(course.passes, 2u);
}

TEST(TrainingLoop, GoesOnBehindTheLastStepOfAnEpoch) {
  for (const std::int64_t group_steps : {0, 2}) {
    MemoryStorage storage;
    LocalRecovery recovery(storage);
    Course course({.epochs = 1, .save_steps = 1, .group_steps = group_steps, .recovery = &recovery});
    const auto done = course.run(lose_at("epoch_end"));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_THAT(course.events, ElementsAre("epoch 0", "step 0.0", "step 0.1", "epoch_end", "epoch 0 again",
                                           "epoch_end", "end", "done"));
  }
}

TEST(TrainingLoop, MakesAStepAgainThatHasChangedNothing) {
  MemoryStorage storage;
  LocalRecovery recovery(storage);
  Course course({.epochs = 1, .recovery = &recovery});
  std::vector<std::uint64_t> runs;
  count_runs_from(40);
  const auto done = course.run([&](const std::string& event, TrainingLoop&) -> Result<> {
    if (event != "step 0.1") return {};
    runs.push_back(counted_runs());
    count_runs_from(50);
    return runs.size() == 1 ? Result<>(fail(Code::peer_lost, "a worker was lost")) : Result<>{};
  });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_THAT(course.events, ElementsAre("epoch 0", "step 0.0", "step 0.1", "epoch 0 again", "step 0.1",
                                         "epoch_end", "end", "done"));
  EXPECT_THAT(runs, ElementsAre(40, 40)) << "the same random numbers";
  count_runs_from(0);
}

TEST(TrainingLoop, GivesAnErrorThatIsNoLossAtOnce) {
  MemoryStorage storage;
  LocalRecovery recovery(storage);
  Course course({.epochs = 1, .recovery = &recovery});
  const auto done = course.run([](const std::string& event, TrainingLoop&) -> Result<> {
    if (event == "step 0.0") return fail(Code::invalid_argument, "it does not fit");
    return {};
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "it does not fit");
  EXPECT_THAT(course.events, ElementsAre("epoch 0", "step 0.0"));
}

TEST(TrainingLoop, AFinishedOneIsPassedOver) {
  MemoryStorage storage;
  {
    LocalRecovery recovery(storage);
    Course first({.epochs = 1, .recovery = &recovery});
    ASSERT_TRUE(first.run());
  }
  LocalRecovery recovery(storage);
  recovery.finished = 1;
  Course second({.epochs = 1, .recovery = &recovery});
  const auto done = second.run();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_THAT(second.events, ElementsAre("done"));
  EXPECT_EQ(second.passes, 1u) << "as the first has left it";
}

}  // namespace
}  // namespace muster::train
