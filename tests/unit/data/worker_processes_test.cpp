#include "muster/data/worker_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "muster/data/data.h"
#include "tests/unit/base/mentions.h"

namespace muster::data {
namespace {
namespace worker_processes_test {

using namespace std::chrono_literals;

Tensor scalar(std::int64_t value) {
  Tensor made(DType::int64, {});
  *made.data<std::int64_t>() = value;
  return made;
}

// Row i: i times i, and what the test adds. Each worker has its own copy.
class Squares final : public RowSource {
 public:
  explicit Squares(std::int64_t rows, std::function<void(std::int64_t)> before = {})
      : rows_(rows), before_(std::move(before)) {}
  std::int64_t rows() const override { return rows_; }
  Result<std::vector<Tensor>> row(std::int64_t index) const override {
    if (before_) before_(index);
    if (index == fails_at) return fail(Code::corrupt, "this row is damaged");
    Tensor values(DType::int32, {longer_from >= 0 && index >= longer_from ? 4 : 3});
    for (std::int64_t i = 0; i < values.elements(); ++i)
      values.data<std::int32_t>()[i] = static_cast<std::int32_t>(index * index + i);
    return std::vector{values, scalar(::getpid())};
  }
  std::int64_t fails_at = -1;
  std::int64_t longer_from = -1;

 private:
  const std::int64_t rows_;
  const std::function<void(std::int64_t)> before_;
};

class AddKey final : public Operation {
 public:
  std::string name() const override { return "add_key"; }
  Result<std::vector<Tensor>> apply(std::span<const Tensor> values, Draw draw) const override {
    Tensor sum(DType::int64, {});
    *sum.data<std::int64_t>() =
        values[0].data<std::int32_t>()[0] +
        static_cast<std::int64_t>(RandomStream(draw.row, draw.operation).below(0, 1000));
    return std::vector{sum};
  }
};

Dataset squares(std::int64_t rows, int processes) {
  return generated({"square", "process"}, std::make_shared<Squares>(rows), {}, {.count = processes});
}

Dataset squares(std::shared_ptr<Squares> source, int processes, std::size_t row_bytes_max = 0) {
  return generated({"square", "process"}, std::move(source), {.shuffle = false},
                   {.count = processes, .row_bytes_max = row_bytes_max});
}

template <class T>
std::vector<T> elements(const Tensor& tensor) {
  return std::vector<T>(tensor.data<T>(), tensor.data<T>() + tensor.elements());
}

// The first column of all items, in order.
template <class T>
std::vector<T> column_of(const Dataset& dataset, IterateOptions options = {}) {
  std::vector<T> all;
  for (const Item& item : dataset.loader(std::move(options)))
    for (const T value : elements<T>(item[0])) all.push_back(value);
  return all;
}

bool is_gone(std::int64_t process) { return ::kill(static_cast<pid_t>(process), 0) != 0; }

TEST(WorkerProcesses, MakeTheSameRowsInTheSameOrderAsOneProcess) {
  for (const std::uint64_t epoch : {0, 3}) {
    const auto expected = column_of<std::int32_t>(squares(200, 0).batch(7), {.seed = 5, .epoch = epoch});
    ASSERT_EQ(expected.size(), 600U);
    for (const int processes : {1, 3})
      EXPECT_EQ(column_of<std::int32_t>(squares(200, processes).batch(7), {.seed = 5, .epoch = epoch}),
                expected);
  }
}

TEST(WorkerProcesses, TakeRowsInTurn) {
  std::vector<std::int64_t> processes;
  for (const Item& item : squares(std::make_shared<Squares>(12), 3).loader({}))
    processes.push_back(elements<std::int64_t>(item[1])[0]);
  ASSERT_EQ(processes.size(), 12U);
  for (std::size_t row = 0; row < 12; ++row) {
    EXPECT_NE(processes[row], ::getpid());
    EXPECT_EQ(processes[row], processes[row % 3]);
  }
}

TEST(WorkerProcesses, MapWithTheDrawsOfOneProcess) {
  const auto mapped = [](int processes) {
    return squares(100, 0)
        .map({std::make_shared<AddKey>()},
             MapOptions{.input_columns = {"square"}, .processes = {.count = processes}})
        .batch(8);
  };
  const auto expected = column_of<std::int64_t>(mapped(0), {.seed = 2});
  EXPECT_EQ(column_of<std::int64_t>(mapped(2), {.seed = 2}), expected);
  EXPECT_EQ(column_of<std::int64_t>(mapped(5), {.seed = 2}), expected);
  EXPECT_NE(column_of<std::int64_t>(mapped(2), {.seed = 3}), expected);
}

TEST(WorkerProcesses, MapBehindProcessesOfASourceKeepsTheOtherColumns) {
  const auto dataset = squares(std::make_shared<Squares>(20), 2)
                           .map({std::make_shared<AddKey>()},
                                MapOptions{.input_columns = {"square"}, .processes = {.count = 2}})
                           .batch(20);
  auto iterator = dataset.iterate({}).value();
  const Item item = *iterator.next().value();
  EXPECT_EQ(item[1].shape(), Shape({20}));
  EXPECT_EQ(elements<std::int64_t>(item[1])[0], elements<std::int64_t>(item[1])[2]);
}

TEST(WorkerProcesses, GoOnBehindItemsThatAnEarlierPassHad) {
  const auto dataset =
      squares(50, 2).map({std::make_shared<AddKey>()}, MapOptions{.processes = {.count = 2}}).batch(4);
  auto expected = column_of<std::int64_t>(dataset, {.epoch = 1});
  expected.erase(expected.begin(), expected.begin() + 5 * 4);
  EXPECT_EQ(column_of<std::int64_t>(dataset, {.epoch = 1, .skip_items = 5}), expected);
}

TEST(WorkerProcesses, BeginAnewInEachRepetition) {
  const auto all = column_of<std::int32_t>(squares(std::make_shared<Squares>(5), 2).repeat(3));
  EXPECT_EQ(all.size(), 45U);
  EXPECT_EQ(std::vector(all.begin() + 30, all.end()), std::vector(all.begin(), all.begin() + 15));
}

// The map asks for several rows at a time.
TEST(WorkerProcesses, GiveTheRowsBeforeAnErrorThatNamesItsRow) {
  auto source = std::make_shared<Squares>(20);
  source->fails_at = 7;
  const Dataset rows = squares(source, 3);
  const Dataset mapped = rows.map({std::make_shared<AddKey>()},
                                  MapOptions{.input_columns = {"square"}, .processes = {.count = 2}});
  for (const Dataset& dataset : {rows, mapped}) {
    auto iterator = dataset.iterate({}).value();
    for (int row = 0; row < 7; ++row) ASSERT_TRUE(iterator.next().value().has_value());
    const auto failed = iterator.next();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::corrupt);
    EXPECT_THAT(failed.error().message,
                Mentions("data worker 1", "row 7 of the source", "this row is damaged"));
  }
}

TEST(WorkerProcesses, AreNamedWhenTheyAreKilledOrEndByThemselves) {
  auto killed = squares(std::make_shared<Squares>(20,
                                                  [](std::int64_t row) {
                                                    if (row == 4) ::raise(SIGKILL);
                                                  }),
                        2)
                    .batch(20)
                    .iterate({})
                    .value();
  EXPECT_THAT(killed.next().error().message,
              Mentions("data worker 0", "killed by signal 9", "row 4 of the source", "memory"));
  auto ended = squares(std::make_shared<Squares>(20,
                                                 [](std::int64_t row) {
                                                   if (row == 5) ::_exit(3);
                                                 }),
                       2)
                   .batch(20)
                   .iterate({})
                   .value();
  EXPECT_THAT(ended.next().error().message, Mentions("data worker 1", "exit code 3", "row 5 of the source"));
}

TEST(WorkerProcesses, ThatHangAreNamedWithTheirRowAndEnded) {
  const auto source = std::make_shared<Squares>(20, [](std::int64_t row) {
    if (row == 3) ::pause();
  });
  auto iterator =
      squares(source, 2).batch(20).iterate({.worker_warning = 50ms, .worker_deadline = 200ms}).value();
  ::testing::internal::CaptureStderr();
  const auto failed = iterator.next();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              Mentions("data worker 1", "row 3 of the source", "no progress", "after 0.2 s it is an error"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::timeout);
  EXPECT_THAT(failed.error().message, Mentions("data worker 1", "row 3 of the source", "deadline"));
}

TEST(WorkerProcesses, AreGoneWithTheirPass) {
  std::vector<std::int64_t> processes;
  {
    auto iterator = squares(std::make_shared<Squares>(1000), 2).iterate({}).value();
    for (int row = 0; row < 2; ++row)
      processes.push_back(elements<std::int64_t>((*iterator.next().value())[1])[0]);
    EXPECT_FALSE(is_gone(processes[0]) || is_gone(processes[1]));
  }
  EXPECT_TRUE(is_gone(processes[0]) && is_gone(processes[1]));
}

TEST(WorkerProcesses, AreGoneAtTheEndOfThePass) {
  auto iterator = squares(std::make_shared<Squares>(3), 1).batch(3).iterate({}).value();
  const std::int64_t process = elements<std::int64_t>((*iterator.next().value())[1])[0];
  ASSERT_FALSE(iterator.next().value().has_value());
  EXPECT_TRUE(is_gone(process));
}

// A worker that is in the middle of a row, for ever.
TEST(WorkerProcesses, DieWithTheProcessThatTrains) {
  std::array<int, 2> report{};
  ASSERT_EQ(::pipe(report.data()), 0);
  const auto tell = [&](std::int64_t row) {
    const pid_t self = ::getpid();
    if (row == 0) (void)!::write(report[1], &self, sizeof self);
    ::pause();
  };
  const pid_t trains = ::fork();
  if (trains == 0) {
    auto iterator = squares(std::make_shared<Squares>(8, tell), 2).iterate({}).value();
    (void)iterator.next();
    ::_exit(1);
  }
  pid_t worker = 0;
  ASSERT_EQ(::read(report[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, worker, 0));
  ASSERT_GE(handle, 0);
  ::kill(trains, SIGKILL);
  pollfd ended{.fd = handle, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ended, 1, 10'000), 1) << "the worker lives on";
  ::waitpid(trains, nullptr, 0);
  for (const int fd : {handle, report[0], report[1]}) ::close(fd);
}

TEST(WorkerProcesses, MakeRowsOfSeveralSizes) {
  auto source = std::make_shared<Squares>(10);
  source->longer_from = 6;
  EXPECT_EQ(column_of<std::int32_t>(squares(source, 2)).size(), 6U * 3 + 4U * 4);
  auto iterator = squares(source, 2).batch(10).iterate({}).value();
  EXPECT_THAT(iterator.next().error().message, Mentions("column 'square' cannot be batched"));
}

class LargeRow final : public RowSource {
 public:
  std::int64_t rows() const override { return 40; }
  Result<std::vector<Tensor>> row(std::int64_t index) const override {
    Tensor made(DType::uint8, {8 << 20});
    std::fill_n(made.data<std::uint8_t>(), made.elements(), static_cast<std::uint8_t>(index));
    return std::vector{made};
  }
};

TEST(WorkerProcesses, MakeLargeRows) {
  const auto dataset = generated({"bytes"}, std::make_shared<LargeRow>(), {.shuffle = false}, {.count = 2});
  std::uint8_t expected = 0;
  for (const Item& item : dataset.loader({})) {
    ASSERT_EQ(item[0].elements(), 8 << 20);
    EXPECT_EQ(item[0].data<std::uint8_t>()[0], expected);
    EXPECT_EQ(item[0].data<std::uint8_t>()[(8 << 20) - 1], expected++);
  }
  EXPECT_EQ(expected, 40);
}

TEST(WorkerProcesses, SayWhenARowIsLargerThanItMayBe) {
  const auto dataset = generated({"bytes"}, std::make_shared<LargeRow>(), {.shuffle = false},
                                 {.count = 2, .row_bytes_max = 1 << 20});
  EXPECT_THAT(dataset.iterate({}).value().next().error().message,
              Mentions("row 0 of the source", "max_rowsize allows 1 MB"));
}

TEST(WorkerProcesses, CountIsWithinLimits) {
  EXPECT_THAT(squares(4, 257).status().error().message, Mentions("257", "from 1 to 256"));
}

}  // namespace worker_processes_test
}  // namespace
}  // namespace muster::data
