#include "muster/cluster/variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/base/mentions.h"

namespace muster::cluster {
namespace {
namespace variables_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Values = std::map<std::string, std::string, std::less<>>;

Values worker() {
  return {{"MS_ROLE", "MS_WORKER"},
          {"MS_SCHED_HOST", "127.0.0.1"},
          {"MS_SCHED_PORT", "8118"},
          {"MS_WORKER_NUM", "8"}};
}

Result<Settings> read(Values values) { return read_settings(FixedEnvironment(std::move(values))); }

Result<Settings> read_with(const std::string& name, const std::string& value) {
  Values values = worker();
  values[name] = value;
  return read(values);
}

std::string error_with(const std::string& name, const std::string& value) {
  const auto settings = read_with(name, value);
  return settings ? "no error" : settings.error().message;
}

TEST(Variables, GiveTheDocumentedDefaults) {
  const auto settings = read(worker());
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->role, Role::worker);
  EXPECT_EQ(settings->scheduler_host, "127.0.0.1");
  EXPECT_EQ(settings->scheduler_port, 8118);
  EXPECT_EQ(settings->worker_num, 8u);
  EXPECT_EQ(settings->server_num, 0u);
  EXPECT_EQ(settings->topo_timeout, std::chrono::minutes(30));
  EXPECT_EQ(settings->retry_timeout, std::chrono::seconds(1830));
  EXPECT_EQ(settings->node_timeout, std::chrono::seconds(600));
  EXPECT_EQ(settings->receive_timeout, std::chrono::seconds(600));
  EXPECT_FALSE(settings->enable_recovery);
  EXPECT_THAT(settings->warnings, IsEmpty());
  EXPECT_THAT(settings->notes, IsEmpty());
}

TEST(Variables, KnowTheThreeRoles) {
  EXPECT_EQ(read_with("MS_ROLE", "MS_SCHED")->role, Role::scheduler);
  EXPECT_EQ(read_with("MS_ROLE", "MS_PSERVER")->role, Role::server);
}

TEST(Variables, NameTheRoleAndTheLauncherWhenTheRoleIsAbsent) {
  const auto settings = read({});
  ASSERT_FALSE(settings);
  EXPECT_THAT(settings.error().message, AllOf(HasSubstr("MS_ROLE"), HasSubstr("muster run")));
}

TEST(Variables, NameWhatMustBeSet) {
  for (const std::string name : {"MS_SCHED_HOST", "MS_SCHED_PORT", "MS_WORKER_NUM"}) {
    Values values = worker();
    values.erase(name);
    const auto settings = read(values);
    ASSERT_FALSE(settings) << name;
    EXPECT_THAT(settings.error().message, HasSubstr(name + " is not set"));
  }
}

TEST(Variables, NameVariableValueAndRangeOfABadValue) {
  for (const std::string value :
       {"0", "80", "1023", "65536", "70000", "abc", "", " 8118", "8118 ", "0x1fb6", "8e3"})
    EXPECT_THAT(error_with("MS_SCHED_PORT", value),
                AllOf(HasSubstr("MS_SCHED_PORT='" + value + "'"), HasSubstr("from 1024 to 65535")));
  for (const std::string value : {"0", "-1", "1000000000", "16385", "2.5", "99999999999999999999"})
    EXPECT_THAT(error_with("MS_WORKER_NUM", value),
                AllOf(HasSubstr("MS_WORKER_NUM='" + value + "'"), HasSubstr("from 1 to 16384")));
  for (const std::string name :
       {"MS_TOPO_TIMEOUT", "MS_NODE_TIMEOUT", "MS_RECEIVE_MSG_TIMEOUT", "MS_CLUSTER_RETRY_NUM"})
    for (const std::string value : {"0", "-5", "nan", "1e3"})
      EXPECT_THAT(error_with(name, value),
                  AllOf(HasSubstr(name + "='" + value + "'"), HasSubstr("from 1 to")));
  EXPECT_THAT(error_with("MS_ROLE", "MS_WROKER"),
              AllOf(HasSubstr("MS_ROLE='MS_WROKER'"), HasSubstr("MS_PSERVER")));
  EXPECT_THAT(error_with("MS_SCHED_HOST", ""), HasSubstr("MS_SCHED_HOST=''"));
  EXPECT_THAT(error_with("MS_NODE_ID", "a b"), HasSubstr("MS_NODE_ID='a b'"));
  EXPECT_THAT(error_with("MUSTER_HOST_KEY", "a#b"), HasSubstr("without '#'"));
  EXPECT_THAT(error_with("MUSTER_HOST_KEY", std::string(65, 'x')), HasSubstr("at most 64"));
  EXPECT_THAT(error_with("MS_ENABLE_RECOVERY", "yes"),
              AllOf(HasSubstr("MS_ENABLE_RECOVERY='yes'"), HasSubstr("0 | 1")));
}

TEST(Variables, TakeTheEdgesOfARange) {
  EXPECT_EQ(read_with("MS_SCHED_PORT", "1024")->scheduler_port, 1024);
  EXPECT_EQ(read_with("MS_SCHED_PORT", "65535")->scheduler_port, 65535);
  EXPECT_EQ(read_with("MS_WORKER_NUM", "16384")->worker_num, 16384u);
}

TEST(Variables, TakeAnEmptyOptionalTextAsAbsent) {
  EXPECT_EQ(read_with("MS_NODE_ID", "")->node_id, "");
  EXPECT_EQ(read_with("MS_WORKER_IP", "")->worker_ip, "");
}

TEST(Variables, AreFoundForEveryLine) {
  for (const Variable& row : variables()) {
    EXPECT_EQ(find_variable(row.name), &row);
    EXPECT_FALSE(allowed_range(row).empty()) << row.name;
    EXPECT_FALSE(row.documentation.empty()) << row.name;
    EXPECT_FALSE(row.default_value.empty() && row.default_note.empty()) << row.name;
  }
}

TEST(Variables, WarnOfAProbableTypo) {
  EXPECT_THAT(read_with("MS_WORKERNUM", "4")->warnings,
              Contains(AllOf(HasSubstr("MS_WORKERNUM"), Mentions("mean", "MS_WORKER_NUM"))));
  EXPECT_THAT(read_with("MS_SHCED_HOST", "x")->warnings, Contains(Mentions("mean", "MS_SCHED_HOST")));
  EXPECT_THAT(read_with("MS_BUILD_PROCESS_NUM", "4")->warnings, IsEmpty());
}

TEST(Variables, WantAPathForRecovery) {
  EXPECT_THAT(error_with("MS_ENABLE_RECOVERY", "1"),
              AllOf(HasSubstr("MS_RECOVERY_PATH"), HasSubstr("MS_ENABLE_RECOVERY=1")));
  EXPECT_TRUE(read_with("MS_ENABLE_RECOVERY", "0"));
}

TEST(Variables, WantServersAndRecoveryForCopiesOfTheirRows) {
  EXPECT_THAT(error_with("MUSTER_SERVER_COPIES", "2"),
              Mentions("MUSTER_SERVER_COPIES", "MS_SERVER_NUM is 0"));
  Values values = worker();
  values["MUSTER_SERVER_COPIES"] = values["MS_SERVER_NUM"] = "2";
  EXPECT_THAT(read(values).error().message, Mentions("MUSTER_SERVER_COPIES", "MS_ENABLE_RECOVERY=1"));
  values["MS_ENABLE_RECOVERY"] = "1";
  values["MS_RECOVERY_PATH"] = "/tmp/points";
  EXPECT_EQ(read(values)->server_copies, 2U);
}

TEST(Variables, TakeAnyValueOfCmInitWithANote) {
  for (const std::string value : {"1", "0", "true", "whatever", ""})
    EXPECT_THAT(read_with("MS_HCCL_CM_INIT", value)->notes, ::testing::ElementsAre(HasSubstr("Ascend")));
}

TEST(Variables, AreAllShownWithValueOriginAndProblem) {
  Values values = worker();
  values["MS_SCHED_PORT"] = "80";
  const std::string text = variables_text(FixedEnvironment(values));
  for (const Variable& row : variables()) EXPECT_THAT(text, HasSubstr(std::string(row.name)));
  EXPECT_THAT(text, HasSubstr("! MS_SCHED_PORT='80'"));
  EXPECT_THAT(text, HasSubstr("environment"));
}

TEST(Variables, AreAllInTheGuideAsTheTableSays) {
  std::ifstream file(std::string(SOURCE_FOLDER) + "/docs/guide/cluster.md");
  const std::string guide{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(guide, HasSubstr(variables_markdown()));
}

}  // namespace variables_test
}  // namespace
}  // namespace muster::cluster
