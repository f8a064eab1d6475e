// What a loop makes of the parameters that its steps write.
#include "muster/train/written_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

graph::ParameterPtr parameter(const std::string& name) {
  return std::make_shared<graph::Parameter>(name, Tensor::zeros(DType::float32, {1000}), false);
}

void write(const graph::ParameterPtr& parameter, std::int64_t at, float value) {
  Tensor values = parameter->storage().clone();
  values.data<float>()[at] = value;
  ASSERT_TRUE(parameter->set(values));
}

class WrittenParametersTest : public ::testing::Test {
 protected:
  graph::ParameterPtr saved_ = parameter("sum"), other_ = parameter("other");
  WrittenParameters written_{std::vector{saved_}, {}};
};

TEST_F(WrittenParametersTest, OnlyWritesOfAStepCount) {
  write(saved_, 0, 1);
  write(other_, 0, 1);
  written_.watch();
  written_.rest();
  write(other_, 0, 2);
  EXPECT_FALSE(written_.has_saved());
  EXPECT_THAT(written_.others(), IsEmpty());
  EXPECT_EQ(written_.hash(0), 0U);
}

TEST_F(WrittenParametersTest, WhatNoPointHoldsIsToldOnceWhileItIsThere) {
  written_.watch();
  write(other_, 0, 1);
  write(other_, 0, 2);
  write(parameter("of the step"), 0, 1);
  written_.rest();
  EXPECT_THAT(written_.others(), ElementsAre(other_));
  EXPECT_THAT(written_.others(), IsEmpty());
}

TEST_F(WrittenParametersTest, WhatTheScriptWritesIsOwnUntilAllWorkersWereSeenToHaveTheSame) {
  EXPECT_EQ(written_.own(), "");
  written_.watch();
  write(saved_, 0, 1);
  EXPECT_TRUE(written_.has_saved());
  EXPECT_THAT(written_.own(), HasSubstr("'sum' is changed by the script"));
  written_.note_compared(true);
  EXPECT_EQ(written_.own(), "");
  written_.note_compared(false);
  written_.note_compared(true);
  EXPECT_THAT(written_.own(), HasSubstr("'sum'")) << "once seen to differ, it may again";
}

TEST_F(WrittenParametersTest, EveryElementCountsInTheFirstStepsAndASampleLater) {
  written_.watch();
  write(saved_, 0, 1);
  const std::uint64_t first = written_.hash(1), later = written_.hash(20);
  write(saved_, 7, 1);  // no element of the sample
  EXPECT_NE(written_.hash(1), first);
  EXPECT_EQ(written_.hash(20), later);
  write(saved_, 0, 2);
  EXPECT_NE(written_.hash(20), later);
  EXPECT_EQ(written_.hash(70), 0U);
  EXPECT_NE(written_.hash(122), 0U);
}

}  // namespace
}  // namespace muster::train
