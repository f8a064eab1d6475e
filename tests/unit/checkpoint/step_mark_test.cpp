#include "muster/checkpoint/step_mark.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace muster::checkpoint {
namespace {
namespace step_mark_test {

class StepMarkFile : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(worker); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::optional<StepPlace> step_of(std::int32_t pid) const {
    return step_of_process(folder, pid, real_storage());
  }

  const std::string folder = ::testing::TempDir() + "/step_mark_" + std::to_string(::getpid());
  const std::string worker = folder + "/job-0123456789abcdef/worker_3";
};

TEST_F(StepMarkFile, TellsTheLastStepOfTheProcess) {
  StepMark mark(worker, 4711);
  EXPECT_EQ(step_of(4711), std::nullopt);
  mark.set({.call = 0, .step = 1});
  mark.set({.call = 2, .step = 70});
  EXPECT_EQ(step_of(4711), (StepPlace{.call = 2, .step = 70}));
}

TEST_F(StepMarkFile, OfAnEarlierLifeIsNone) {
  StepMark(worker, 4711).set({.call = 0, .step = 70});
  EXPECT_EQ(step_of(4712), std::nullopt);
}

TEST_F(StepMarkFile, ThatIsDamagedIsNone) {
  StepMark(worker, 4711).set({.call = 0, .step = 70});
  std::fstream(worker + "/step", std::ios::in | std::ios::out | std::ios::binary).seekp(16).put('G');
  EXPECT_EQ(step_of(4711), std::nullopt);
}

TEST_F(StepMarkFile, CostsNothingWhereItCannotBeWritten) {
  StepMark mark(folder + "/nowhere", 4711);
  mark.set({.call = 0, .step = 70});
  EXPECT_EQ(step_of(4711), std::nullopt);
}

}  // namespace step_mark_test
}  // namespace
}  // namespace muster::checkpoint
