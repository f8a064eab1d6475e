#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "muster/telemetry/telemetry.h"

namespace muster::telemetry {
namespace {
namespace flight_recorder_test {

using testing::HasSubstr;
using testing::IsEmpty;

class FlightRecorderOf : public testing::Test {
 protected:
  FlightRecorderOf() {
    std::string made = testing::TempDir() + "flightXXXXXX";
    folder_ = ::mkdtemp(made.data());
  }
  ~FlightRecorderOf() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/flight/worker_1.flight"; }
  std::shared_ptr<FlightRecorder> open() const {
    return FlightRecorder::open(path(), {.job_id = 7, .rank = 1, .world_size = 4, .pid = 99, .host = "alpha"})
        .value();
  }

  std::string folder_;
};

TEST_F(FlightRecorderOf, HasTheStacksThatWereKeptLast) {
  const auto recorder = open();
  EXPECT_FALSE(read_flight(path()).value().stacks);
  ASSERT_TRUE(recorder->keep_stacks("  in load()\n"));
  ASSERT_TRUE(recorder->keep_stacks("  in \x1b[31mtrain()\n"));
  const auto stacks = read_flight(path()).value().stacks;
  ASSERT_TRUE(stacks);
  EXPECT_EQ(stacks->text, "  in \\x1b[31mtrain()\n");
  EXPECT_NEAR(static_cast<double>(wall_ns() - stacks->taken_ns), 0, 60e9);
  for (const char* other :
       {"", "\n", "Muster stacks 2, taken at 5\nin f\n", "Muster stacks 1, taken at x\nin f\n"}) {
    std::ofstream(folder_ + "/flight/worker_1.stacks") << other;
    EXPECT_FALSE(read_flight(path()).value().stacks) << other;
  }
}

TEST_F(FlightRecorderOf, TellsWhatWasBegunAndHowItEnded) {
  const auto recorder = open();
  recorder->add_group({.id = 5, .epoch = 2, .rank = 1, .size = 4});
  const auto first = recorder->begin(
      {.group = 5, .number = 1, .count = 3, .kind = CallKind::all_reduce, .dtype = DType::float32});
  recorder->end(first, std::nullopt);
  const auto second = recorder->begin({.group = 5, .number = 9, .peer = 2, .kind = CallKind::receive});
  recorder->end(second, Code::peer_lost);
  recorder->begin({.group = 5, .number = 2, .kind = CallKind::barrier});
  const Flight read = read_flight(path()).value();
  EXPECT_EQ(read.process,
            (FlightProcess{.job_id = 7, .rank = 1, .world_size = 4, .pid = 99, .host = "alpha"}));
  EXPECT_FALSE(read.left);
  ASSERT_EQ(read.groups.size(), 1u);
  EXPECT_EQ(read.groups[0].epoch, 2u);
  ASSERT_EQ(read.records.size(), 3u);
  EXPECT_EQ(read.records[0].state, FlightState::completed);
  EXPECT_EQ(read.records[0].dtype, DType::float32);
  EXPECT_GE(read.records[0].end_ns, read.records[0].begin_ns);
  EXPECT_EQ(read.records[1].state, FlightState::failed);
  EXPECT_EQ(read.records[1].code, Code::peer_lost);
  EXPECT_EQ(read.records[1].peer, 2u);
  EXPECT_EQ(read.records[2].state, FlightState::started);
  EXPECT_EQ(read.records[2].end_ns, 0);
  recorder->note_leave(3);
  EXPECT_EQ(read_flight(path())->left, 3);
}

TEST_F(FlightRecorderOf, KeepsTheLastOnes) {
  const auto recorder = open();
  const auto first = recorder->begin({.number = 1, .kind = CallKind::barrier});
  for (std::uint64_t number = 2; number <= flight_records + 10; ++number)
    recorder->end(recorder->begin({.number = number, .kind = CallKind::barrier}), std::nullopt);
  recorder->end(first, Code::timeout);  // it was overwritten: another one's place
  const Flight read = read_flight(path()).value();
  ASSERT_EQ(read.records.size(), flight_records);
  EXPECT_EQ(read.records.front().number, 11u);
  EXPECT_EQ(read.records.back().number, flight_records + 10);
  for (const FlightRecord& record : read.records) EXPECT_EQ(record.state, FlightState::completed);
}

TEST_F(FlightRecorderOf, IsThereWhenTheProcessWasKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    open()->begin({.number = 1, .kind = CallKind::barrier});
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(read_flight(path()));
  EXPECT_EQ(read_flight(path())->records.size(), 1u);
}

TEST_F(FlightRecorderOf, OfAnyOtherBytesNothingIsTaken) {
  EXPECT_THAT(read_flight(path()).error().message, HasSubstr("has not the size"));
  open().reset();
  EXPECT_THAT(read_flight(path())->records, IsEmpty());
  {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8192);
    for (int i = 0; i < 16000; ++i) file.write("\xff\x01\x02\xfe\x00\x7f\x80\x31", 8);
  }
  EXPECT_THAT(read_flight(path())->records, IsEmpty());
  std::fstream(path(), std::ios::in | std::ios::out | std::ios::binary) << "no";
  EXPECT_THAT(read_flight(path()).error().message, HasSubstr("is no flight recorder's file"));
}

TEST_F(FlightRecorderOf, ThatCannotBeMadeIsAnErrorWithItsName) {
  std::ofstream(folder_ + "/flight") << "a file";
  const auto made = FlightRecorder::open(path(), {});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr(path()));
}

}  // namespace flight_recorder_test
}  // namespace
}  // namespace muster::telemetry
