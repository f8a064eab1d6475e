#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/train/train.h"

namespace muster::train {
namespace {

using cluster::SecuritySettings;

TEST(PsContext, KeepsWhatIsNotGiven) {
  ASSERT_TRUE(set_ps_context({.config_file_path = "a.json", .client_password = "one"}));
  ASSERT_TRUE(set_ps_context({.enable_ssl = true, .client_password = "two"}));
  EXPECT_TRUE(ps_context().enable_ssl);
  EXPECT_EQ(ps_context().config_file_path, "a.json");
  EXPECT_EQ(ps_context().client_password, "two");
  ASSERT_TRUE(reset_ps_context());
  EXPECT_EQ(ps_context(), PsContext{});
}

TEST(PsContext, GoesBeforeTheEnvironment) {
  const SecuritySettings of_environment{
      .enable_ssl = true, .config_path = "b.json", .client_password_file = "file"};
  const SecuritySettings chosen = chosen_security(
      of_environment, {.enable_ssl = true, .config_file_path = "a.json", .server_password = "word"});
  EXPECT_EQ(chosen.config_path, "a.json");
  EXPECT_TRUE(chosen.is_config_of_script);
  EXPECT_EQ(chosen.client_password_file, "file");
  EXPECT_EQ(chosen.server_password, "word");
}

TEST(PsContext, DoesNotTurnOffWhatTheEnvironmentTurnsOn) {
  const SecuritySettings of_environment{.enable_ssl = true, .config_path = "b.json"};
  EXPECT_EQ(chosen_security(of_environment, {}), of_environment);
  const SecuritySettings token{.token_file = "token"};
  EXPECT_EQ(chosen_security(token, {}), token);
}

TEST(PsContext, WithoutAFileTakesTheEnvironments) {
  const SecuritySettings chosen = chosen_security({.config_path = "b.json"}, {.enable_ssl = true});
  EXPECT_TRUE(chosen.enable_ssl);
  EXPECT_EQ(chosen.config_path, "b.json");
  EXPECT_FALSE(chosen.is_config_of_script);
}

}  // namespace
}  // namespace muster::train
