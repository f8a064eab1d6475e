#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/cluster/variables.h"

namespace muster::cluster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Values = std::map<std::string, std::string, std::less<>>;

std::vector<std::string> warnings(Values values) {
  const auto checked = check_alone(FixedEnvironment(std::move(values)));
  return checked ? *checked : std::vector<std::string>{"error: " + checked.error().message};
}

TEST(Alone, IsAProcessWithoutAnyVariableOfACluster) {
  EXPECT_TRUE(is_alone(FixedEnvironment(Values{})));
  EXPECT_TRUE(is_alone(FixedEnvironment(Values{{"MUSTER_LOG", "info"}, {"WORLD_SIZE", "4"}})));
  for (const std::string name :
       {"MS_ROLE", "MS_WORKER_NUM", "MS_SCHED_HOST", "MS_ENABLE_RECOVERY", "MS_NODE_ID"})
    EXPECT_FALSE(is_alone(FixedEnvironment(Values{{name, "1"}}))) << name;
}

TEST(Alone, IsSilentWhereNothingHintsAtOthers) {
  EXPECT_THAT(warnings({}), IsEmpty());
  EXPECT_THAT(warnings({{"WORLD_SIZE", "1"}, {"RANK", "0"}, {"SLURM_NTASKS", "1"}, {"TF_CONFIG", ""}}),
              IsEmpty());
  EXPECT_THAT(warnings({{"WORLD_SIZE", "large"}}), IsEmpty());
}

TEST(Alone, NamesTheVariableThatHintsAtOthersAndTheWay) {
  for (const auto& [name, value] : Values{{"WORLD_SIZE", "4"},
                                          {"RANK", "1"},
                                          {"OMPI_COMM_WORLD_SIZE", "2"},
                                          {"SLURM_NTASKS", "8"},
                                          {"TF_CONFIG", "{}"},
                                          {"RANK_TABLE_FILE", "table.json"}})
    EXPECT_THAT(warnings({{name, value}}),
                ElementsAre(AllOf(HasSubstr(name + "=" + value), HasSubstr("muster run"))));
}

TEST(Alone, SaysAllHintsInOneLine) {
  EXPECT_THAT(warnings({{"WORLD_SIZE", "4"}, {"RANK", "3"}}),
              ElementsAre(AllOf(HasSubstr("WORLD_SIZE=4"), HasSubstr("RANK=3"))));
}

TEST(Alone, TakesAMistypedVariableForAHint) {
  EXPECT_THAT(warnings({{"MS_ROLLE", "MS_WORKER"}}), ElementsAre(HasSubstr("MS_ROLE")));
}

TEST(Alone, MakesAHintAnErrorUnderStrict) {
  const auto checked = check_alone(FixedEnvironment(Values{{"WORLD_SIZE", "4"}, {"MUSTER_STRICT", "1"}}));
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("WORLD_SIZE=4"));
  EXPECT_TRUE(check_alone(FixedEnvironment(Values{{"MUSTER_STRICT", "1"}})));
}

TEST(Alone, NamesAVariableThatCannotBeUsed) {
  const auto checked = check_alone(FixedEnvironment(Values{{"MUSTER_LOG", "loud"}}));
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("MUSTER_LOG='loud'"));
}

TEST(Alone, IsNoProcessWithHalfACluster) {
  const auto settings = read_settings(FixedEnvironment(Values{{"MS_WORKER_NUM", "4"}}));
  ASSERT_FALSE(settings);
  EXPECT_THAT(settings.error().message, AllOf(HasSubstr("MS_ROLE is not set"), HasSubstr("MS_WORKER_NUM")));
}

}  // namespace
}  // namespace muster::cluster
