#include "muster/data/iterator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <latch>
#include <thread>

#include "digits.h"
#include "muster/data/buffer_pool.h"
#include "muster/data/data.h"
#include "muster/data/iterator_state.h"
#include "tests/unit/base/mentions.h"

namespace muster::data {
namespace {

using namespace muster::data::testing;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

// Tells which thread it runs on and how often, and does what the test says. Not built in, so that the
// iterator has a thread from the start.
class Probe final : public Operation {
 public:
  std::string name() const override { return "probe"; }
  Result<std::vector<Tensor>> apply(std::span<const Tensor> values, Draw) const override {
    thread = std::this_thread::get_id();
    const int call = calls.fetch_add(1) + 1;
    calls.notify_all();
    if (on_call) {
      if (auto result = on_call(call); !result) return fail(result.error());
    }
    return std::vector(values.begin(), values.end());
  }

  void wait_for_calls(int count) const {
    for (int seen = calls; seen < count; seen = calls) calls.wait(seen);
  }

  std::function<Result<>(int)> on_call;
  mutable std::atomic<std::thread::id> thread;
  mutable std::atomic<int> calls = 0;
};

Dataset digits(std::uint32_t rows) {
  return mnist({.folder = "/digits", .shuffle = false}, digits_folder(rows));
}

TEST(Iterator, MakesItemsAheadOnAThreadOfItsOwn) {
  const auto probe = std::make_shared<Probe>();
  auto iterator = digits(100).map({probe}, {"label"}).iterate({.prefetch_items = 4}).value();
  probe->wait_for_calls(4);  // nobody has asked for an item
  EXPECT_NE(probe->thread.load(), std::this_thread::get_id());
  for (std::uint32_t row = 0; row < 100; ++row) EXPECT_EQ(row_of((*iterator.next().value())[0]), row);
  EXPECT_FALSE(iterator.next().value().has_value());
}

TEST(Iterator, NeverMakesMoreAheadThanItMay) {
  const auto probe = std::make_shared<Probe>();
  auto iterator = digits(100).map({probe}, {"label"}).iterate({.prefetch_items = 4}).value();
  for (int taken = 1; taken <= 50; ++taken) {
    ASSERT_TRUE(iterator.next().value().has_value());
    EXPECT_LE(probe->calls.load(), taken + 4 + 1);  // one more may be in the making
  }
}

// Counts for ever: scalars 0, 1, 2, …
class Counter final : public Node {
 public:
  const std::vector<Column>& columns() const override { return columns_; }
  std::int64_t size() const override { return -1; }
  bool foreign() const override { return true; }  // a thread from the start
  std::uint64_t draws() const override { return 0; }
  std::unique_ptr<Stream> open(Pass) const override { return std::make_unique<Counting>(); }

 private:
  struct Counting final : Stream {
    std::int64_t count = 0;
    Result<std::optional<Block>> next(std::size_t) override {
      return Block{1, {Tensor::scalar(count++).reshaped({1})}, {0}};
    }
  };
  const std::vector<Column> columns_ = {{"count", DType::int64, Shape{}}};
};

TEST(Iterator, SleepsUntilHalfOfWhatItMadeIsTaken) {
  Iterator::State state(std::make_shared<Counter>(), {.prefetch_items = 8});
  for (int round = 0; round < 20; ++round) {
    while (state.ready() < 8) std::this_thread::yield();  // with the eighth item it falls asleep
    for (std::size_t left = 7; left > 4; --left) {
      ASSERT_TRUE(state.next().value().has_value());
      ASSERT_EQ(state.ready(), left) << "it woke up for few";
    }
    ASSERT_TRUE(state.next().value().has_value());
  }
}

// Built in; each item takes as long as the clock is told.
class Priced final : public Node {
 public:
  explicit Priced(Duration price) : price_(price) {}
  const std::vector<Column>& columns() const override { return columns_; }
  std::int64_t size() const override { return size_endless; }
  bool foreign() const override { return false; }
  std::uint64_t draws() const override { return 0; }
  std::unique_ptr<Stream> open(Pass) const override { return std::make_unique<Making>(*this); }

  mutable ManualClock clock;
  mutable std::atomic<std::thread::id> thread;

 private:
  struct Making final : Stream {
    explicit Making(const Priced& priced) : node(priced) {}
    Result<std::optional<Block>> next(std::size_t) override {
      node.clock.advance(node.price_);
      node.thread = std::this_thread::get_id();
      return Block{1, {Tensor::scalar(std::int64_t{1}).reshaped({1})}, {0}};
    }
    const Priced& node;
  };
  const Duration price_;
  const std::vector<Column> columns_ = {{"priced", DType::int64, Shape{}}};
};

std::thread::id maker_of_the_tenth_item(Duration price) {
  const auto node = std::make_shared<Priced>(price);
  Iterator::State state(node, {.prefetch_items = 1, .clock = node->clock});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(state.next().value().has_value());
  return node->thread;
}

TEST(Iterator, MakesItemsWhereItIsAskedWhileThatIsCheaperThanAThread) {
  EXPECT_EQ(maker_of_the_tenth_item(std::chrono::microseconds(100)), std::this_thread::get_id());
  EXPECT_NE(maker_of_the_tenth_item(std::chrono::microseconds(101)), std::this_thread::get_id());
}

// Items of 48 MiB.
class Large final : public Node {
 public:
  const std::vector<Column>& columns() const override { return columns_; }
  std::int64_t size() const override { return size_endless; }
  bool foreign() const override { return true; }
  std::uint64_t draws() const override { return 0; }
  std::unique_ptr<Stream> open(Pass) const override { return std::make_unique<Making>(); }

 private:
  struct Making final : Stream {
    Result<std::optional<Block>> next(std::size_t) override {
      return Block{1, {Tensor(DType::uint8, {1, 48 << 20})}, {0}};
    }
  };
  const std::vector<Column> columns_ = {{"large", DType::uint8, Shape{48 << 20}}};
};

TEST(Iterator, HoldsFewerItemsAheadWhereTheyAreLarge) {
  Iterator::State state(std::make_shared<Large>(), {.prefetch_items = 8});
  ASSERT_TRUE(state.next().value().has_value());
  while (state.ready() < 2) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(state.next().value().has_value());
    ASSERT_LE(state.ready(), 2U);
  }
}

TEST(Iterator, JoinsItsThreadWhenItIsDroppedMidWay) {
  for (const std::size_t ahead : {1U, 2U, 8U})
    for (int taken = 0; taken < 12; ++taken) {
      const auto probe = std::make_shared<Probe>();
      {
        auto iterator = digits(20).map({probe}, {"label"}).iterate({.prefetch_items = ahead}).value();
        for (int i = 0; i < taken; ++i) ASSERT_TRUE(iterator.next().value().has_value());
      }
      EXPECT_EQ(probe.use_count(), 1) << "a thread still holds the pipeline";
    }
}

TEST(Iterator, IsDroppedSafelyWhileAnItemIsBeingMade) {
  const auto probe = std::make_shared<Probe>();
  std::latch inside(1), go_on(1);
  probe->on_call = [&](int call) -> Result<> {
    if (call == 3) {
      inside.count_down();
      go_on.wait();
    }
    return {};
  };
  auto iterator = digits(20).map({probe}, {"label"}).iterate({}).value();
  inside.wait();
  auto dropped = std::async(std::launch::async,
                            [moved = std::move(iterator)]() mutable { Iterator gone(std::move(moved)); });
  go_on.count_down();
  dropped.get();
  EXPECT_LE(probe->calls.load(), 20);
}

TEST(Iterator, ReportsAnErrorOfTheThreadInItsPlaceAndAgainAfterwards) {
  const auto probe = std::make_shared<Probe>();
  probe->on_call = [](int call) -> Result<> {
    if (call == 3) return fail(Code::invalid_argument, "the third row is odd");
    return {};
  };
  auto iterator = digits(20).map({probe}, {"label"}).iterate({}).value();
  EXPECT_TRUE(iterator.next().value().has_value());
  EXPECT_TRUE(iterator.next().value().has_value());
  for (int i = 0; i < 3; ++i) EXPECT_THAT(iterator.next().error().message, Mentions("third"));
}

TEST(Iterator, KeepsSayingThatThePassHasEnded) {
  for (const auto& dataset : {digits(2), digits(2).map({std::make_shared<Probe>()}, {"label"})}) {
    auto iterator = dataset.iterate({}).value();
    EXPECT_TRUE(iterator.next().value().has_value());
    EXPECT_TRUE(iterator.next().value().has_value());
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(iterator.next().value().has_value());
  }
}

TEST(Iterator, AsksWhetherToGoOnWhileItWaits) {
  const auto probe = std::make_shared<Probe>();
  std::latch interrupted(1);
  probe->on_call = [&](int) -> Result<> {
    interrupted.wait();
    return {};
  };
  auto iterator = digits(2)
                      .map({probe}, {"label"})
                      .iterate({.while_waiting = [&]() -> Result<> {
                        interrupted.count_down();
                        return fail(Code::aborted, "interrupted by a signal");
                      }})
                      .value();
  EXPECT_EQ(iterator.next().error().message, "interrupted by a signal");
}

TEST(Iterator, YieldsItemsThatOutliveItAndTheDataset) {
  std::vector<Item> items;
  {
    const auto dataset = digits(40).map({rescale(1, 0)}, {"image"}).batch(8);
    items = items_of(dataset);
  }
  ASSERT_EQ(items.size(), 5U);
  for (std::uint32_t row = 0; row < 40; ++row)
    EXPECT_EQ(items[row / 8][0].data<float>()[row % 8 * 784], pixel_of(row, 0));
}

TEST(Iterator, NeverHandsOutMemoryThatIsStillInUse) {
  const auto dataset = digits(64).map({rescale(1, 0)}, {"image"}).batch(2);
  auto iterator = dataset.iterate({}).value();
  std::vector<Item> kept;
  for (std::uint32_t batch = 0; auto item = iterator.next().value(); ++batch)
    if (batch % 3 == 0) kept.push_back(*std::move(item));
  for (std::uint32_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i][0].data<float>()[0], pixel_of(6 * i, 0));
}

TEST(Iterator, LetsSeveralPassesRunAtOnce) {
  const auto dataset =
      digits(200).map({rescale(1, 0)}, {"image"}).map({std::make_shared<Probe>()}, {"label"}).batch(8);
  std::vector<std::future<std::vector<Item>>> passes;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch)
    passes.push_back(std::async(std::launch::async, [&] { return items_of(dataset); }));
  for (auto& pass : passes) {
    const auto items = pass.get();
    ASSERT_EQ(items.size(), 25U);
    for (std::uint32_t row = 0; row < 200; ++row)
      EXPECT_EQ(items[row / 8][0].data<float>()[row % 8 * 784], pixel_of(row, 0));
  }
}

TEST(Iterator, IsAnErrorInAForkedChildAndLetsItGo) {
  for (const auto& dataset : {digits(20), digits(20).map({std::make_shared<Probe>()}, {"label"})}) {
    std::optional iterator = dataset.iterate({}).value();
    ASSERT_TRUE(iterator->next().value().has_value());
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // ends a child that hangs
      const auto item = iterator->next();
      const bool refused = !item && item.error().code == Code::refused;
      iterator.reset();
      ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(iterator->next().value().has_value()) << "the parent goes on";
  }
}

TEST(Iterator, TellsTheProcessorTimeOfItsItems) {
  auto probe = std::make_shared<Probe>();
  probe->on_call = [](int) -> Result<> {
    const Duration begin = thread_processor_time();
    while (thread_processor_time() - begin < 2ms) {
    }
    return {};
  };
  const auto times = std::make_shared<ItemTimes>();
  auto items = digits(3).map({probe}, {"label"}).iterate({.times = times}).value();
  while (items.next().value()) {
  }
  ASSERT_TRUE(times->middle());
  EXPECT_GE(*times->middle(), 2ms);
}

TEST(ItemTimes, KnowNothingOfOneItemAndTheMiddleOfSeveral) {
  ItemTimes times;
  times.add(900ms);  // opens files
  EXPECT_FALSE(times.middle());
  times.add(3ms);
  times.add(1ms);
  EXPECT_EQ(times.middle(), 3ms);
}

TEST(Iterator, WantsAtLeastOneItemAhead) {
  EXPECT_THAT(digits(2).iterate({.prefetch_items = 0}).error().message, HasSubstr("at least 1"));
}

TEST(BufferPool, UsesMemoryAgainWhenNobodyHoldsItAnyMore) {
  const BufferPool pool;
  Tensor first = pool.make(DType::float32, {100});
  const std::byte* memory = first.bytes();
  const Tensor second = pool.make(DType::float32, {100});
  EXPECT_NE(second.bytes(), memory);
  first = Tensor();
  EXPECT_EQ(pool.make(DType::uint8, {400}).bytes(), memory);
  EXPECT_NE(pool.make(DType::uint8, {401}).bytes(), memory);
}

}  // namespace
}  // namespace muster::data
